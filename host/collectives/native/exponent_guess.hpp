// What E an operation will have: that of the last one of its kind, type and length.  Data that
// leave on a guess need no round trip for E; after a wrong one they leave again.  Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "signature.hpp"

namespace catchment::host {

// Longer operations take so long that the round trip is not worth a wrong guess.
inline constexpr std::uint32_t kMostTried = 32;

class ExponentGuess {
 public:
  // `own`: what this rank's array needs, and so the least that is agreed.
  int of(const Signature& signature, int own) const {
    const Entry& entry = entries_[place_of(signature)];
    return entry.matches(signature) ? std::max<int>(own, entry.exponent) : own;
  }
  void learn(const Signature& signature, std::int8_t agreed) {
    entries_[place_of(signature)] = {signature.kind, signature.type, signature.elements, agreed};
  }

 private:
  struct Entry {
    Kind kind = Kind::kBarrier;  // none that has E
    wire::DataType type = wire::DataType::kBYTES;
    std::uint64_t elements = 0;
    std::int8_t exponent = 0;

    bool matches(const Signature& signature) const {
      return kind == signature.kind && type == signature.type && elements == signature.elements;
    }
  };

  static constexpr std::size_t kEntries = 256;

  static std::size_t place_of(const Signature& signature) {
    const std::uint64_t mixed =
        (signature.elements * 8 + static_cast<std::uint64_t>(signature.type)) * 0x9e3779b97f4a7c15U;
    return mixed >> 56;
  }

  std::array<Entry, kEntries> entries_;
};

}  // namespace catchment::host
