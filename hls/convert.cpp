#include "convert.hpp"

#include "convert_lane.hpp"

namespace catchment::hls_model {
namespace {

// Beat `half` of what a beat of elements becomes.
Beat lanes_of(const Beat& elements, const Format& format, int half) {
#pragma HLS INLINE
  const bool narrow = is_narrow(format);
  Beat lanes{0, 0, 0, 0};
convert_lanes:
  for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
    const int bytes = narrow ? 2 : 4;
    const int first = bytes * (i + (half == 1 ? kLanes : 0));
    if (elements.keep[first] == 0) continue;
    const ap_uint<32> word = narrow ? ap_uint<32>(elements.data.range(8 * first + 15, 8 * first))
                                    : ap_uint<32>(elements.data.range(32 * i + 31, 32 * i));
    const Lane lane = quantize_lane(word, format);
    lanes.data.range(32 * i + 31, 32 * i) = ap_uint<32>(lane.value);
    lanes.keep.range(4 * i + 3, 4 * i) = 0xf;
    lanes.user[kLanes + i] = lane.saturated;
    lanes.user[i] = lane.nonfinite;
  }
  return lanes;
}

}  // namespace

void float_to_int(hls::stream<Beat>& in, hls::stream<Beat>& out, Format format) {
#pragma HLS INTERFACE mode = axis port = in
#pragma HLS INTERFACE mode = axis port = out
#pragma HLS INTERFACE mode = s_axilite port = format
#pragma HLS INTERFACE mode = s_axilite port = return
  Beat beat{0, 0, 0, 0};
  bool second = false;
  bool more = true;
message:
  while (more) {
#pragma HLS PIPELINE II = 1
    if (!second) beat = in.read();
    const bool has_second = is_narrow(format) && beat.keep[kBeatBytes / 2] == 1;
    Beat lanes = lanes_of(beat, format, second ? 1 : 0);
    const bool finished = second || !has_second;
    lanes.last = beat.last == 1 && finished;
    out.write(lanes);
    more = lanes.last == 0;
    second = !finished;
  }
}

void int_to_float(hls::stream<Beat>& in, hls::stream<Beat>& out, Format format) {
#pragma HLS INTERFACE mode = axis port = in
#pragma HLS INTERFACE mode = axis port = out
#pragma HLS INTERFACE mode = s_axilite port = format
#pragma HLS INTERFACE mode = s_axilite port = return
  const bool narrow = is_narrow(format);
  Beat gathered{0, 0, 0, 0};
  bool holding = false;
  bool more = true;
message:
  while (more) {
#pragma HLS PIPELINE II = 1
    const Beat lanes = in.read();
    if (!holding) gathered = Beat{0, 0, 0, 0};
  convert_lanes:
    for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
      if (lanes.keep[4 * i] == 0) continue;
      const ap_uint<32> word =
          dequantize_lane(ap_int<32>(lanes.data.range(32 * i + 31, 32 * i)), format);
      if (narrow) {
        const int first = 2 * (i + (holding ? kLanes : 0));
        gathered.data.range(8 * first + 15, 8 * first) = word.range(15, 0);
        gathered.keep.range(first + 1, first) = 0x3;
      } else {
        gathered.data.range(32 * i + 31, 32 * i) = word;
        gathered.keep.range(4 * i + 3, 4 * i) = 0xf;
      }
    }
    gathered.last = lanes.last;
    const bool complete = !narrow || holding || lanes.last == 1;
    if (complete) out.write(gathered);
    holding = !complete;
    more = lanes.last == 0;
  }
}

}  // namespace catchment::hls_model
