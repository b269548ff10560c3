// What travels on the kernels' streams.  A beat is 512 bits; byte 0 of a message is in the low
// bits.
#pragma once

#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_stream.h>

#include "wire_hls.hpp"

namespace catchment::hls_model {

constexpr int kBeatBytes = 64;
constexpr int kLanes = 16;  // 32-bit lanes of a beat

struct Beat {
  ap_uint<8 * kBeatBytes> data;
  ap_uint<kBeatBytes> keep;
  ap_uint<1> last;
  // float_to_int: {which lanes were cut, which of those were not finite}
  ap_uint<2 * kLanes> user;
};

// How to convert a message: element type, shared exponent E, headroom h.
struct Format {
  ap_uint<8> dtype;
  ap_int<8> exponent;
  ap_uint<3> headroom;
};

using Seq = ap_uint<32>;

// Serial arithmetic: a lies 1 .. 2^31 - 1 ahead of b.
inline bool newer(Seq a, Seq b) {
  const Seq ahead = a - b;
  return ahead != 0 && ahead[31] == 0;
}

}  // namespace catchment::hls_model
