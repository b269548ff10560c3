// The part of Vitis HLS's header of this name that the kernels use, for g++ alone; Vitis has its own.
#pragma once

#include <ap_int.h>

#include <cstddef>
#include <cstdint>

#define AXIS_ENABLE_LAST 0b00000100
#define AXIS_ENABLE_KEEP 0b00010000

namespace hls {
namespace axis_members {

template <std::size_t kBits>
struct User {
  ap_uint<kBits> user;
};
template <>
struct User<0> {};

}  // namespace axis_members

// A beat of an AXI4-Stream: TDATA, TKEEP, TLAST, and TUSER if it has bits.
template <typename T, std::size_t kUser, std::size_t kId, std::size_t kDest, std::uint8_t kEnabled>
struct axis : axis_members::User<kUser> {
  static_assert(kId == 0 && kDest == 0 && kEnabled == (AXIS_ENABLE_KEEP | AXIS_ENABLE_LAST),
                "other signals are not modelled");

  T data;
  ap_uint<T::width / 8> keep;
  ap_uint<1> last;
};

}  // namespace hls
