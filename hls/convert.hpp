// A message of floats to lanes and back: the kernels that rtl/format/float_to_int.sv and
// int_to_float.sv are in RTL, with the same streams.  Each is a DATAFLOW of processes.
#pragma once

#include "stream_types.hpp"

namespace catchment::hls_model {

// One message: a beat of 32-bit elements is one beat of lanes; one of 16-bit elements is two, the
// low half first, the second only if it holds an element.  Of packed lanes, two beats of 32-bit
// elements are one, an odd last one goes alone, and a beat of 16-bit elements is one.
void float_to_int(hls::stream<FormatBeat>& s_axis, hls::stream<CutBeat>& m_axis);

// One message: two beats of lanes are one of 16-bit elements; an odd last one goes alone.  A beat
// of packed lanes, of which keep has two bytes for each element, is two beats of 32-bit elements,
// the second only if it holds one, or one of 16-bit elements.
void int_to_float(hls::stream<FormatBeat>& s_axis, hls::stream<PlainBeat>& m_axis);

}  // namespace catchment::hls_model
