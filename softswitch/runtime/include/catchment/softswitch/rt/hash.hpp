// v1model's hash algorithms over a run of bytes, and the bit string that they are fed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "catchment/common/crc.hpp"
#include "catchment/common/internet_checksum.hpp"
#include "catchment/softswitch/rt/packet.hpp"

namespace catchment::softswitch::rt {

inline std::uint64_t hash_crc32(const std::uint8_t* p, std::size_t n) {
  return static_cast<std::uint32_t>(~crc<std::uint32_t, 0xEDB88320U>(p, n, 0xFFFFFFFFU));
}
inline std::uint64_t hash_crc16(const std::uint8_t* p, std::size_t n) {
  return crc<std::uint16_t, 0xA001U>(p, n, 0);
}

/// The Internet checksum (RFC 1071).
inline std::uint64_t hash_csum16(const std::uint8_t* p, std::size_t n) {
  std::uint16_t sum = fold(ones_sum(p, n));
  if constexpr (std::endian::native == std::endian::little) {
    sum = static_cast<std::uint16_t>((sum >> 8) | (sum << 8));
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
  [[gnu::always_inline]] void put(const bits<W>& value) {
    words_.template put<W>(size_, value);
    size_ += W;
  }
  template <unsigned Max>
  void put(const Varbit<Max>& value) {
    for (std::uint32_t at = 0; at < value.width; at += 8) {
      const std::uint32_t width = std::min(value.width - at, 8U);
      words_.place(size_, width, value.data[at / 8] >> (8 - width));
      size_ += width;
    }
  }
  /// Its bytes, as they are by now.
  [[nodiscard]] const std::uint8_t* data() {
    words_.store(data_.data());
    return data_.data();
  }
  [[nodiscard]] std::size_t size() const { return (size_ + 7) / 8; }

 private:
  FieldWords<Bytes> words_;
  std::array<std::uint8_t, Bytes> data_;
  std::size_t size_ = 0;  // bits
};

}  // namespace catchment::softswitch::rt
