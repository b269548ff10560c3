// Reflected cyclic redundancy checks, a byte at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace catchment {

/// What each byte adds to a CRC with the reflected polynomial `Poly`.
template <class T, T Poly>
constexpr std::array<T, 256> crc_table() {
  std::array<T, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    T rest = static_cast<T>(i);
    for (int bit = 0; bit < 8; ++bit) {
      rest = static_cast<T>((rest & 1U) != 0 ? (rest >> 1) ^ Poly : rest >> 1);
    }
    table[i] = rest;
  }
  return table;
}

/// The rest after `n` more bytes, without an inversion before or after them.
template <class T, T Poly>
T crc(const std::uint8_t* p, std::size_t n, T rest) {
  static constexpr auto kTable = crc_table<T, Poly>();
  for (std::size_t i = 0; i < n; ++i) {
    rest = static_cast<T>(kTable[(rest ^ p[i]) & 0xFFU] ^ static_cast<T>(rest >> 8));
  }
  return rest;
}

}  // namespace catchment
