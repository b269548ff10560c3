// A message of floats to lanes and back: the kernels that rtl/format/float_to_int.sv and
// int_to_float.sv are in RTL.
#pragma once

#include "stream_types.hpp"

namespace catchment::hls_model {

// One message: a beat of 32-bit elements is one beat of lanes; one of 16-bit elements is two, the
// low half first, the second only if it holds an element.
void float_to_int(hls::stream<Beat>& in, hls::stream<Beat>& out, Format format);

// One message: two beats of lanes are one of 16-bit elements; an odd last one goes alone.
void int_to_float(hls::stream<Beat>& in, hls::stream<Beat>& out, Format format);

}  // namespace catchment::hls_model
