// v1model's hash algorithms over a run of bytes, and the bit string that they are fed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "catchment/softswitch/rt/packet.hpp"

namespace catchment::softswitch::rt {

/// Table of a reflected CRC with the reflected polynomial `Poly`.
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

template <class T, T Poly>
inline T crc(const std::uint8_t* p, std::size_t n, T rest) {
  static constexpr auto kTable = crc_table<T, Poly>();
  for (std::size_t i = 0; i < n; ++i) {
    rest = static_cast<T>(kTable[(rest ^ p[i]) & 0xFFU] ^ static_cast<T>(rest >> 8));
  }
  return rest;
}

inline std::uint64_t hash_crc32(const std::uint8_t* p, std::size_t n) {
  return static_cast<std::uint32_t>(~crc<std::uint32_t, 0xEDB88320U>(p, n, 0xFFFFFFFFU));
}
inline std::uint64_t hash_crc16(const std::uint8_t* p, std::size_t n) {
  return crc<std::uint16_t, 0xA001U>(p, n, 0);
}

/// The Internet checksum (RFC 1071).
inline std::uint64_t hash_csum16(const std::uint8_t* p, std::size_t n) {
  std::uint64_t sum = 0;
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    sum += load_be<std::uint32_t>(p + i);
  }
  for (; i < n; ++i) {
    sum += static_cast<std::uint64_t>(p[i]) << (i % 2 == 0 ? 8 : 0);
  }
  while ((sum >> 16) != 0) {
    sum = (sum & 0xFFFFU) + (sum >> 16);
  }
  return ~sum & 0xFFFFU;
}

/// The first eight bytes as a number.
inline std::uint64_t hash_identity(const std::uint8_t* p, std::size_t n) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < n && i < 8; ++i) {
    value = (value << 8) | p[i];
  }
  return value;
}

inline std::uint64_t hash_xor16(const std::uint8_t* p, std::size_t n) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < n; ++i) {
    value ^= static_cast<std::uint64_t>(p[i]) << (i % 2 == 0 ? 8 : 0);
  }
  return value;
}

/// v1model's hash(): value % max + base; a max of zero counts as one.
inline std::uint64_t hash_in_range(std::uint64_t value, std::uint64_t base, std::uint64_t max) {
  return value % (max == 0 ? 1 : max) + base;
}

/// A bit string of at most Bytes bytes, zero padded to a whole byte.
template <std::size_t Bytes>
class BitString {
 public:
  template <unsigned W>
  void put(const bits<W>& value) {
    store_bits<W>(data_.data(), size_, value);
    size_ += W;
  }
  template <unsigned Max>
  void put(const Varbit<Max>& value) {
    value.store(data_.data(), size_);
    size_ += value.width;
  }
  [[nodiscard]] const std::uint8_t* data() const { return data_.data(); }
  [[nodiscard]] std::size_t size() const { return (size_ + 7) / 8; }

 private:
  std::array<std::uint8_t, Bytes> data_{};
  std::size_t size_ = 0;  // bits
};

}  // namespace catchment::softswitch::rt
