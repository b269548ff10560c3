// The externs of bloom.p4 for compiled code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace catchment::externs {

inline std::uint16_t fold(std::uint32_t value, std::uint8_t& rounds, bool& odd) {
  rounds = static_cast<std::uint8_t>(rounds + 1);
  odd = value % 2 != 0;
  return static_cast<std::uint16_t>((value >> 16) ^ value);
}

class Seen {
 public:
  Seen(std::uint32_t size, std::string_view name) : size_(size), second_(name == "second") {}

  // Whether the key was there; the oldest makes room.
  bool add(std::uint32_t key) {
    const bool known = std::ranges::find(keys_, key) != keys_.end();
    if (!known) {
      keys_.push_back(key);
      if (keys_.size() > size_) {
        keys_.erase(keys_.begin());
      }
    }
    return known;
  }
  void most(std::uint32_t& key, std::uint8_t offset) const {
    const std::uint32_t largest = keys_.empty() ? 0 : *std::ranges::max_element(keys_);
    key =
        largest + static_cast<std::uint32_t>(static_cast<std::int8_t>(offset)) + (second_ ? 1 : 0);
  }

 private:
  std::uint32_t size_;
  bool second_;
  std::vector<std::uint32_t> keys_;
};

}  // namespace catchment::externs
