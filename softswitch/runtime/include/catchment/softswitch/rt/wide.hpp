// Fixed-width unsigned integers of more than 128 bits, as limbs of 64 bits, least significant
// first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace catchment::softswitch::rt {

using u128 = unsigned __int128;

/// N limbs; arithmetic wraps at 64 * N bits. Callers mask to the P4 width.
template <std::size_t N>
struct Wide {
  std::array<std::uint64_t, N> limb{};

  constexpr Wide() = default;
  constexpr explicit Wide(std::uint64_t low) { limb[0] = low; }
  constexpr explicit Wide(const std::array<std::uint64_t, N>& limbs) : limb(limbs) {}

  friend constexpr bool operator==(const Wide&, const Wide&) = default;

  friend constexpr bool operator<(const Wide& a, const Wide& b) {
    for (std::size_t i = N; i-- > 0;) {
      if (a.limb[i] != b.limb[i]) {
        return a.limb[i] < b.limb[i];
      }
    }
    return false;
  }
  friend constexpr bool operator>(const Wide& a, const Wide& b) { return b < a; }
  friend constexpr bool operator<=(const Wide& a, const Wide& b) { return !(b < a); }
  friend constexpr bool operator>=(const Wide& a, const Wide& b) { return !(a < b); }

  friend constexpr Wide operator&(const Wide& a, const Wide& b) {
    Wide r;
    for (std::size_t i = 0; i < N; ++i) {
      r.limb[i] = a.limb[i] & b.limb[i];
    }
    return r;
  }
  friend constexpr Wide operator|(const Wide& a, const Wide& b) {
    Wide r;
    for (std::size_t i = 0; i < N; ++i) {
      r.limb[i] = a.limb[i] | b.limb[i];
    }
    return r;
  }
  friend constexpr Wide operator^(const Wide& a, const Wide& b) {
    Wide r;
    for (std::size_t i = 0; i < N; ++i) {
      r.limb[i] = a.limb[i] ^ b.limb[i];
    }
    return r;
  }
  constexpr Wide operator~() const {
    Wide r;
    for (std::size_t i = 0; i < N; ++i) {
      r.limb[i] = ~limb[i];
    }
    return r;
  }
  friend constexpr Wide operator+(const Wide& a, const Wide& b) {
    Wide r;
    u128 carry = 0;
    for (std::size_t i = 0; i < N; ++i) {
      carry += static_cast<u128>(a.limb[i]) + b.limb[i];
      r.limb[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    return r;
  }
  friend constexpr Wide operator-(const Wide& a, const Wide& b) { return a + ~b + Wide(1); }

  friend constexpr Wide operator*(const Wide& a, const Wide& b) {
    Wide r;
    for (std::size_t i = 0; i < N; ++i) {
      u128 carry = 0;
      for (std::size_t j = 0; i + j < N; ++j) {
        carry += static_cast<u128>(a.limb[i]) * b.limb[j] + r.limb[i + j];
        r.limb[i + j] = static_cast<std::uint64_t>(carry);
        carry >>= 64;
      }
    }
    return r;
  }
  friend constexpr Wide operator<<(const Wide& a, std::uint64_t amount) {
    Wide r;
    const std::size_t limbs = amount / 64;
    const unsigned rest = static_cast<unsigned>(amount % 64);
    for (std::size_t i = N; i-- > limbs && limbs < N;) {
      r.limb[i] = a.limb[i - limbs] << rest;
      if (rest != 0 && i > limbs) {
        r.limb[i] |= a.limb[i - limbs - 1] >> (64 - rest);
      }
    }
    return r;
  }
  friend constexpr Wide operator>>(const Wide& a, std::uint64_t amount) {
    Wide r;
    const std::size_t limbs = amount / 64;
    const unsigned rest = static_cast<unsigned>(amount % 64);
    for (std::size_t i = 0; limbs < N && i + limbs < N; ++i) {
      r.limb[i] = a.limb[i + limbs] >> rest;
      if (rest != 0 && i + limbs + 1 < N) {
        r.limb[i] |= a.limb[i + limbs + 1] << (64 - rest);
      }
    }
    return r;
  }
  [[nodiscard]] constexpr bool bit(std::size_t i) const {
    return ((limb[i / 64] >> (i % 64)) & 1U) != 0;
  }

  /// Quotient and remainder by shift and subtract; division is rare in data planes.
  static constexpr void divide(const Wide& a, const Wide& b, Wide& quotient, Wide& remainder) {
    quotient = Wide();
    remainder = Wide();
    for (std::size_t i = 64 * N; i-- > 0;) {
      const bool carry = remainder.bit(64 * N - 1);
      remainder = remainder << 1;
      remainder.limb[0] |= a.bit(i) ? 1U : 0U;
      if (carry || !(remainder < b)) {
        remainder = remainder - b;
        quotient.limb[i / 64] |= std::uint64_t{1} << (i % 64);
      }
    }
  }
};

}  // namespace catchment::softswitch::rt
