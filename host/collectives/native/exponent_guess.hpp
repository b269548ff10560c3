// What E the vectors of an operation will have: those of the last one of its kind, type and length.
// Data that leave on a guess need no round trip for E; after a wrong one they leave again.  Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "scale.hpp"
#include "signature.hpp"

namespace catchment::host {

class ExponentGuess {
 public:
  // `own`: what this rank's elements of vector `index` need, on the grid, and so the least that is
  // agreed.
  std::int8_t of(const Signature& signature, std::uint32_t index, std::int8_t own) const {
    const Entry& entry = entries_[place_of(signature)];
    return entry.matches(signature) ? std::max(own, entry.exponents[index]) : own;
  }
  // Remembers the agreed scales of an operation's first vectors, kMostTried of them at most.
  void learn(const Signature& signature, std::span<const Scale> agreed) {
    Entry& entry = entries_[place_of(signature)];
    entry = {signature.kind, signature.type, signature.elements, {}};
    std::ranges::transform(agreed, entry.exponents.begin(), &Scale::exponent);
  }

 private:
  struct Entry {
    Kind kind = Kind::kBarrier;  // none that has E
    wire::DataType type = wire::DataType::kBYTES;
    std::uint64_t elements = 0;
    std::array<std::int8_t, kMostTried> exponents{};

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
