// One lane each way (docs/explanation/protocol.md, "Numbers").  Rounding is ap_fixed's AP_RND_CONV,
// half to even: another way to the same bits than the shifters of rtl/format.
#pragma once

#include "stream_types.hpp"

namespace catchment::hls_model {

struct Lane {
  ap_int<32> value;
  ap_uint<1> saturated;
  ap_uint<1> nonfinite;
};

// x = (-1)^sign * significand * 2^(exponent - 150)
struct Unpacked {
  ap_uint<1> sign;
  ap_uint<24> significand;
  ap_uint<8> exponent;
  ap_uint<1> nonfinite;
};

inline bool is_type(const Format& format, wire_hls::DataType type) {
  return format.dtype == static_cast<unsigned>(type);
}

inline bool is_narrow(const Format& format) {
  return is_type(format, wire_hls::DataType::kFP16) || is_type(format, wire_hls::DataType::kBF16);
}

inline Unpacked unpack(ap_uint<32> word, const Format& format) {
#pragma HLS INLINE
  ap_uint<8> field;
  ap_uint<23> fraction;
  ap_uint<8> first = 1;  // exponent of denormals
  ap_uint<8> special = 255;
  Unpacked number;
  if (is_type(format, wire_hls::DataType::kFP16)) {
    number.sign = word[15];
    field = word.range(14, 10);
    fraction = ap_uint<23>(word.range(9, 0)) << 13;
    first = 113;  // its exponents lie 127 - 15 above their field
    special = 31;
  } else if (is_type(format, wire_hls::DataType::kBF16)) {
    number.sign = word[15];
    field = word.range(14, 7);
    fraction = ap_uint<23>(word.range(6, 0)) << 16;
  } else {
    number.sign = word[31];
    field = word.range(30, 23);
    fraction = word.range(22, 0);
  }
  number.nonfinite = field == special;
  number.exponent = field == 0 ? first : ap_uint<8>(field + first - 1);
  number.significand = (ap_uint<24>(field != 0) << 23) | fraction;
  return number;
}

// q = round_half_even(x * 2^(30 - h - E)), cut to [-2^(30-h), 2^(30-h)].  For packed lanes 15
// stands in place of 30, and a number that rounds to 2^(15-h) ends one below it, uncut, if the
// workers are 2^h.
inline Lane quantize_lane(ap_uint<32> word, const Format& format) {
#pragma HLS INLINE
  if (is_type(format, wire_hls::DataType::kINT32)) return {ap_int<32>(word), 0, 0};
  constexpr int kMostLeft = 18;  // further, and anything is beyond the largest lane
  constexpr int kFraction = 26;  // further right, and a significand is less than a half
  const int place = format.pairs == 1 ? 15 : 30;
  const Unpacked number = unpack(word, format);
  const ap_int<12> left = ap_int<12>(number.exponent) - (150 - place) -
                          ap_int<12>(format.headroom) - ap_int<12>(format.exponent);
  const ap_int<12> inside = left > kMostLeft ? ap_int<12>(kMostLeft) : left;

  ap_ufixed<24 + kMostLeft + kFraction, 24 + kMostLeft> exact = 0;
  if (inside >= -kFraction) {
    const ap_uint<24 + kMostLeft + kFraction> bits = number.significand;
    exact.range() = bits << ap_uint<6>(inside + kFraction);
  }
  const ap_ufixed<25 + kMostLeft, 25 + kMostLeft, AP_RND_CONV> rounded = exact;
  const ap_uint<25 + kMostLeft> whole = rounded.range();

  const ap_uint<32> limit = ap_uint<32>(1) << ap_uint<5>(place - format.headroom);
  const ap_uint<32> most = format.pairs == 1 && format.full == 1 ? ap_uint<32>(limit - 1) : limit;
  const bool cut = number.nonfinite == 1 || whole > limit;
  const ap_int<33> magnitude = cut || whole > most ? ap_int<33>(most) : ap_int<33>(whole);
  return {number.sign == 1 ? ap_int<32>(-magnitude) : ap_int<32>(magnitude), cut, number.nonfinite};
}

// q * 2^(E + h - 30), rounded once; fp16 and bf16 in the low half.
inline ap_uint<32> dequantize_lane(ap_int<32> lane, const Format& format) {
#pragma HLS INLINE
  if (is_type(format, wire_hls::DataType::kINT32)) return lane;
  if (lane == 0) return 0;
  const bool fp16 = is_type(format, wire_hls::DataType::kFP16);
  const bool bf16 = is_type(format, wire_hls::DataType::kBF16);
  const int fraction_bits = fp16 ? 10 : bf16 ? 7 : 23;
  const int bias = fp16 ? 15 : 127;
  const ap_uint<32> infinity = fp16 ? 0x7c00U : bf16 ? 0x7f80U : 0x7f800000U;

  const ap_uint<1> sign = lane[31];
  const ap_uint<32> magnitude = sign == 1 ? ap_uint<32>(-ap_int<33>(lane)) : ap_uint<32>(lane);
  ap_uint<5> top = 0;
find_top:
  for (int i = 0; i < 32; ++i) {
#pragma HLS UNROLL
    if (magnitude[i] == 1) top = i;
  }
  const ap_int<12> exponent = ap_int<12>(top) - 30 + format.exponent + ap_int<12>(format.headroom);
  const ap_int<12> below = ap_int<12>(1 - bias) - exponent;  // beneath the smallest normal
  ap_int<12> drop = ap_int<12>(31 - fraction_bits) + (below > 0 ? below : ap_int<12>(0));
  constexpr int kMostDropped = 34;  // nothing but a sticky bit is left
  if (drop > kMostDropped) drop = kMostDropped;

  const ap_uint<32 + kMostDropped> normal = ap_uint<32 + kMostDropped>(magnitude)
                                            << (31 - top + kMostDropped);
  ap_ufixed<32 + kMostDropped, 32> exact = 0;
  exact.range() = normal >> ap_uint<6>(drop);
  const ap_ufixed<33, 33, AP_RND_CONV> rounded = exact;

  // The hidden one of a normal number counts one exponent, and so does a carry out of the fraction.
  const ap_uint<12> field = below > 0 ? ap_uint<12>(0) : ap_uint<12>(exponent + bias - 1);
  ap_uint<40> number = (ap_uint<40>(field) << fraction_bits) + ap_uint<40>(rounded.range());
  if (number > infinity) number = infinity;
  const int width = fp16 || bf16 ? 16 : 32;
  return ap_uint<32>(number) | (ap_uint<32>(sign) << (width - 1));
}

}  // namespace catchment::hls_model
