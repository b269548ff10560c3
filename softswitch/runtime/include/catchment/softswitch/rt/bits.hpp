// bit<W> and int<W>: storage and arithmetic with P4_16 semantics.
//
// A value of either type is stored as the unsigned number of its low W bits (int<W>: two's
// complement); bits above W are always zero. Signedness is in the operation's name.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "catchment/softswitch/rt/wide.hpp"

namespace catchment::softswitch::rt {

template <unsigned W>
struct Storage {
  using type = std::conditional_t<
      W <= 8, std::uint8_t,
      std::conditional_t<
          W <= 16, std::uint16_t,
          std::conditional_t<
              W <= 32, std::uint32_t,
              std::conditional_t<W <= 64, std::uint64_t,
                                 std::conditional_t<W <= 128, u128, Wide<(W + 63) / 64>>>>>>;
};

template <unsigned W>
using bits = typename Storage<W>::type;

template <class T>
inline constexpr bool is_wide = false;
template <std::size_t N>
inline constexpr bool is_wide<Wide<N>> = true;

template <class T>
constexpr std::uint64_t limb_of(const T& value, std::size_t i) {
  if constexpr (is_wide<T>) {
    return i < value.limb.size() ? value.limb[i] : 0;
  } else if constexpr (sizeof(T) > 8) {
    return i < 2 ? static_cast<std::uint64_t>(value >> (64 * i)) : 0;
  } else {
    return i == 0 ? static_cast<std::uint64_t>(value) : 0;
  }
}

template <unsigned W>
constexpr bits<W> max_value() {
  if constexpr (W <= 128) {
    return static_cast<bits<W>>(static_cast<u128>(-1) >> (128 - W));
  } else {
    bits<W> r = ~bits<W>();
    if constexpr (W % 64 != 0) {
      r.limb.back() >>= 64 - W % 64;
    }
    return r;
  }
}

/// Returns the low W bits of a number of the same storage.
template <unsigned W, class T>
constexpr bits<W> mask(const T& value) {
  if constexpr (W == 8 || W == 16 || W == 32 || W == 64 || W == 128) {
    return static_cast<bits<W>>(value);
  } else if constexpr (W < 128) {
    return static_cast<bits<W>>(static_cast<bits<W>>(value) & max_value<W>());
  } else if constexpr (W % 64 == 0) {
    return value;
  } else {
    bits<W> r = value;
    r.limb.back() &= ~std::uint64_t{0} >> (64 - W % 64);
    return r;
  }
}

template <unsigned W>
constexpr bits<W> from_limbs(const std::array<std::uint64_t, (W + 63) / 64>& limbs) {
  if constexpr (W <= 64) {
    return mask<W>(limbs[0]);
  } else if constexpr (W <= 128) {
    return mask<W>((static_cast<u128>(limbs[1]) << 64) | limbs[0]);
  } else {
    return mask<W>(bits<W>(limbs));
  }
}

template <unsigned W>
constexpr bool negative(const bits<W>& value) {
  return ((limb_of(value, (W - 1) / 64) >> ((W - 1) % 64)) & 1U) != 0;
}

/// Zero extension or truncation between any two widths.
template <unsigned To, class T>
constexpr bits<To> resize(const T& value) {
  if constexpr (To <= 128 && !is_wide<T>) {
    return mask<To>(value);
  } else {
    std::array<std::uint64_t, (To + 63) / 64> limbs{};
    for (std::size_t i = 0; i < limbs.size(); ++i) {
      limbs[i] = limb_of(value, i);
    }
    return from_limbs<To>(limbs);
  }
}

/// Sign extension (or truncation) of an int<From>.
template <unsigned To, unsigned From>
constexpr bits<To> sign_extend(const bits<From>& value) {
  bits<To> r = resize<To>(value);
  if constexpr (To > From) {
    if (negative<From>(value)) {
      r = mask<To>(r | mask<To>(~resize<To>(max_value<From>())));
    }
  }
  return r;
}

// Arithmetic that wraps
// -------------------------------------------------------------------------------------------------

/// Small storage types promote to int in C++: 64-bit multiplication of them must stay unsigned.
template <class T>
using Calc = std::conditional_t<is_wide<T> || (sizeof(T) >= 4), T, std::uint32_t>;

template <unsigned W>
constexpr bits<W> add(const bits<W>& a, const bits<W>& b) {
  return mask<W>(static_cast<Calc<bits<W>>>(a) + static_cast<Calc<bits<W>>>(b));
}
template <unsigned W>
constexpr bits<W> sub(const bits<W>& a, const bits<W>& b) {
  return mask<W>(static_cast<Calc<bits<W>>>(a) - static_cast<Calc<bits<W>>>(b));
}
template <unsigned W>
constexpr bits<W> mul(const bits<W>& a, const bits<W>& b) {
  return mask<W>(static_cast<Calc<bits<W>>>(a) * static_cast<Calc<bits<W>>>(b));
}
template <unsigned W>
constexpr bits<W> neg(const bits<W>& a) {
  return sub<W>(bits<W>(0), a);
}
template <unsigned W>
constexpr bits<W> inv(const bits<W>& a) {
  return mask<W>(~static_cast<Calc<bits<W>>>(a));
}
template <unsigned W>
constexpr bits<W> and_(const bits<W>& a, const bits<W>& b) {
  return static_cast<bits<W>>(a & b);
}
template <unsigned W>
constexpr bits<W> or_(const bits<W>& a, const bits<W>& b) {
  return static_cast<bits<W>>(a | b);
}
template <unsigned W>
constexpr bits<W> xor_(const bits<W>& a, const bits<W>& b) {
  return static_cast<bits<W>>(a ^ b);
}

/// Division by zero gives zero.
template <unsigned W>
constexpr bits<W> div(const bits<W>& a, const bits<W>& b) {
  if (b == bits<W>(0)) {
    return bits<W>(0);
  }
  if constexpr (is_wide<bits<W>>) {
    bits<W> q;
    bits<W> r;
    bits<W>::divide(a, b, q, r);
    return q;
  } else {
    return static_cast<bits<W>>(a / b);
  }
}
/// Remainder by zero gives zero.
template <unsigned W>
constexpr bits<W> mod(const bits<W>& a, const bits<W>& b) {
  if (b == bits<W>(0)) {
    return bits<W>(0);
  }
  if constexpr (is_wide<bits<W>>) {
    bits<W> q;
    bits<W> r;
    bits<W>::divide(a, b, q, r);
    return r;
  } else {
    return static_cast<bits<W>>(a % b);
  }
}

// Saturating arithmetic
// -------------------------------------------------------------------------------------------------

template <unsigned W>
constexpr bits<W> sat_add_u(const bits<W>& a, const bits<W>& b) {
  const bits<W> r = add<W>(a, b);
  return r < a ? max_value<W>() : r;
}
template <unsigned W>
constexpr bits<W> sat_sub_u(const bits<W>& a, const bits<W>& b) {
  return a < b ? bits<W>(0) : sub<W>(a, b);
}
template <unsigned W>
constexpr bits<W> min_signed() {
  return mask<W>(resize<W>(bits<W>(1)) << (W - 1));
}
template <unsigned W>
constexpr bits<W> max_signed() {
  return inv<W>(min_signed<W>());
}
template <unsigned W>
constexpr bits<W> sat_add_s(const bits<W>& a, const bits<W>& b) {
  const bits<W> r = add<W>(a, b);
  if (negative<W>(a) == negative<W>(b) && negative<W>(r) != negative<W>(a)) {
    return negative<W>(a) ? min_signed<W>() : max_signed<W>();
  }
  return r;
}
template <unsigned W>
constexpr bits<W> sat_sub_s(const bits<W>& a, const bits<W>& b) {
  const bits<W> r = sub<W>(a, b);
  if (negative<W>(a) != negative<W>(b) && negative<W>(r) != negative<W>(a)) {
    return negative<W>(a) ? min_signed<W>() : max_signed<W>();
  }
  return r;
}

// Shifts: `amount` of any width, without a limit
// ------------------------------------------------------------------------

/// A number as an index or amount: saturates at 2^64 - 1.
template <class T>
constexpr std::uint64_t to_u64(const T& value) {
  if constexpr (is_wide<T> || sizeof(T) > 8) {
    for (std::size_t i = 1; i < sizeof(T) / 8; ++i) {
      if (limb_of(value, i) != 0) {
        return std::numeric_limits<std::uint64_t>::max();
      }
    }
  }
  return limb_of(value, 0);
}
template <unsigned W, class A>
constexpr bits<W> shl(const bits<W>& a, const A& amount) {
  const std::uint64_t n = to_u64(amount);
  return n >= W ? bits<W>(0) : mask<W>(static_cast<Calc<bits<W>>>(a) << n);
}
template <unsigned W, class A>
constexpr bits<W> shr(const bits<W>& a, const A& amount) {
  const std::uint64_t n = to_u64(amount);
  return n >= W ? bits<W>(0) : static_cast<bits<W>>(a >> n);
}
/// Arithmetic shift of an int<W>.
template <unsigned W, class A>
constexpr bits<W> sar(const bits<W>& a, const A& amount) {
  const std::uint64_t n = to_u64(amount);
  const bits<W> moved = shr<W>(a, n);
  return negative<W>(a) ? or_<W>(moved, n >= W ? max_value<W>() : inv<W>(shr<W>(max_value<W>(), n)))
                        : moved;
}

// Comparisons, as functions: the compiler has no opinion on a constant result
// -----------------------

template <class T>
constexpr bool equal(const T& a, const T& b) {
  return a == b;
}
template <unsigned W>
constexpr bool less_u(const bits<W>& a, const bits<W>& b) {
  return a < b;
}
/// Compares two values as int<W>.
template <unsigned W>
constexpr bool less_s(const bits<W>& a, const bits<W>& b) {
  return xor_<W>(a, min_signed<W>()) < xor_<W>(b, min_signed<W>());
}

// Slices and concatenation
// ----------------------------------------------------------------------------------------------

template <unsigned Hi, unsigned Lo, class T>
constexpr bits<Hi - Lo + 1> slice(const T& value) {
  if constexpr (!is_wide<T>) {
    return mask<Hi - Lo + 1>(value >> Lo);
  } else {
    return resize<Hi - Lo + 1>(value >> Lo);
  }
}
/// `base` of width W with bits Hi..Lo replaced.
template <unsigned W, unsigned Hi, unsigned Lo>
constexpr bits<W> with_slice(const bits<W>& base, const bits<Hi - Lo + 1>& value) {
  const bits<W> hole = shl<W>(resize<W>(max_value<Hi - Lo + 1>()), Lo);
  return or_<W>(and_<W>(base, inv<W>(hole)), shl<W>(resize<W>(value), Lo));
}
/// `base[start +: N]`; bits beyond the base read as zero.
template <unsigned W, unsigned N, class A>
constexpr bits<N> plus_slice(const bits<W>& base, const A& start) {
  return resize<N>(shr<W>(base, start));
}
template <unsigned W, unsigned N, class A>
constexpr bits<W> with_plus_slice(const bits<W>& base, const A& start, const bits<N>& value) {
  const bits<W> hole = shl<W>(resize<W>(max_value<N>()), start);
  return or_<W>(and_<W>(base, inv<W>(hole)), shl<W>(resize<W>(value), start));
}
template <unsigned WA, unsigned WB>
constexpr bits<WA + WB> concat(const bits<WA>& a, const bits<WB>& b) {
  return or_<WA + WB>(shl<WA + WB>(resize<WA + WB>(a), WB), resize<WA + WB>(b));
}

}  // namespace catchment::softswitch::rt
