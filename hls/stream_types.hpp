// What travels on the kernels' streams.  A beat is 512 bits; byte 0 of a message is in the low
// bits.
#pragma once

#include <ap_axi_sdata.h>
#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_stream.h>

#include "wire_hls.hpp"

namespace catchment::hls_model {

constexpr int kBeatBytes = 64;
constexpr int kLanes = 16;  // 32-bit lanes of a beat

// How to convert a message: element type, shared exponent E, headroom h; whether lanes are packed,
// and whether the workers are 2^h, so that the largest number of a packed lane is one less.
struct Format {
  ap_uint<8> dtype;
  ap_int<8> exponent;
  ap_uint<3> headroom;
  ap_uint<1> pairs = 0;
  ap_uint<1> full = 0;
};

constexpr int kFormatBits = 1 + 1 + 8 + 8 + 3;

// As format_t of rtl/format/format_pkg.sv lies in TUSER.
inline ap_uint<kFormatBits> pack(const Format& format) {
  ap_uint<kFormatBits> bits;
  bits[20] = format.full;
  bits[19] = format.pairs;
  bits.range(18, 11) = format.dtype;
  bits.range(10, 3) = ap_uint<8>(format.exponent);
  bits.range(2, 0) = format.headroom;
  return bits;
}

inline Format unpack(ap_uint<kFormatBits> bits) {
  return {ap_uint<8>(bits.range(18, 11)), ap_int<8>(ap_uint<8>(bits.range(10, 3))),
          ap_uint<3>(bits.range(2, 0)), ap_uint<1>(bits[19]), ap_uint<1>(bits[20])};
}

// A beat with TDATA, TKEEP, TLAST and a TUSER of `kUser` bits, as the RTL's streams have; no TSTRB.
template <int kUser>
using Beat = hls::axis<ap_uint<8 * kBeatBytes>, kUser, 0, 0, AXIS_ENABLE_KEEP | AXIS_ENABLE_LAST>;

using FormatBeat = Beat<kFormatBits>;  // TUSER: how to convert
// TUSER: {elements that were cut, those of them not finite}; packed lanes alone have twice kLanes
using CutBeat = Beat<4 * kLanes>;
using PlainBeat = Beat<0>;

using Seq = ap_uint<32>;

// Serial arithmetic: a lies 1 .. 2^31 - 1 ahead of b.
inline bool newer(Seq a, Seq b) {
  const Seq ahead = a - b;
  return ahead != 0 && ahead[31] == 0;
}

}  // namespace catchment::hls_model
