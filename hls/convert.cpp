#include "convert.hpp"

#include "convert_lane.hpp"

namespace catchment::hls_model {
namespace {

// Up to 16 elements, each in 32 bits, between the two processes of a kernel.
struct Group {
  ap_uint<32 * kLanes> words;
  ap_uint<kLanes> kept;
  ap_uint<1> last;
  Format format;
};

// A beat of 16-bit elements is two groups, the second only if it holds an element.
void spread(hls::stream<FormatBeat>& s_axis, hls::stream<Group>& groups) {
  FormatBeat beat;
  bool second = false;
  bool more = true;
spread_message:
  while (more) {
#pragma HLS PIPELINE II = 1
    if (!second) beat = s_axis.read();
    const Format format = unpack(beat.user);
    const bool narrow = is_narrow(format);
    const bool finished = second || !narrow || beat.keep[kBeatBytes / 2] == 0;
    Group group{0, 0, 0, format};
  spread_elements:
    for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
      const int first = narrow ? 2 * (i + (second ? kLanes : 0)) : 4 * i;
      const ap_uint<32> word = narrow ? ap_uint<32>(beat.data.range(8 * first + 15, 8 * first))
                                      : ap_uint<32>(beat.data.range(32 * i + 31, 32 * i));
      group.words.range(32 * i + 31, 32 * i) = word;
      group.kept[i] = beat.keep[first];
    }
    group.last = beat.last == 1 && finished;
    groups.write(group);
    more = group.last == 0;
    second = !finished;
  }
}

void quantize(hls::stream<Group>& groups, hls::stream<CutBeat>& m_axis) {
  bool more = true;
quantize_message:
  while (more) {
#pragma HLS PIPELINE II = 1
    const Group group = groups.read();
    CutBeat lanes;
    lanes.data = 0;
    lanes.keep = 0;
    lanes.user = 0;
  quantize_lanes:
    for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
      if (group.kept[i] == 0) continue;
      const ap_uint<32> word = group.words.range(32 * i + 31, 32 * i);
      const Lane lane = quantize_lane(word, group.format);
      lanes.data.range(32 * i + 31, 32 * i) = ap_uint<32>(lane.value);
      lanes.keep.range(4 * i + 3, 4 * i) = 0xf;
      lanes.user[kLanes + i] = lane.saturated;
      lanes.user[i] = lane.nonfinite;
    }
    lanes.last = group.last;
    m_axis.write(lanes);
    more = group.last == 0;
  }
}

void dequantize(hls::stream<FormatBeat>& s_axis, hls::stream<Group>& groups) {
  bool more = true;
dequantize_message:
  while (more) {
#pragma HLS PIPELINE II = 1
    const FormatBeat lanes = s_axis.read();
    Group group{0, 0, lanes.last, unpack(lanes.user)};
  dequantize_lanes:
    for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
      const ap_int<32> lane(lanes.data.range(32 * i + 31, 32 * i));
      group.words.range(32 * i + 31, 32 * i) = dequantize_lane(lane, group.format);
      group.kept[i] = lanes.keep[4 * i];
    }
    groups.write(group);
    more = group.last == 0;
  }
}

// Two groups of 16-bit elements are one beat; an odd last one goes alone.
void gather(hls::stream<Group>& groups, hls::stream<PlainBeat>& m_axis) {
  PlainBeat beat;
  bool holding = false;
  bool more = true;
gather_message:
  while (more) {
#pragma HLS PIPELINE II = 1
    const Group group = groups.read();
    const bool narrow = is_narrow(group.format);
    if (!holding) {
      beat.data = 0;
      beat.keep = 0;
    }
  gather_elements:
    for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
      if (group.kept[i] == 0) continue;
      const ap_uint<32> word = group.words.range(32 * i + 31, 32 * i);
      if (narrow) {
        const int first = 2 * (i + (holding ? kLanes : 0));
        beat.data.range(8 * first + 15, 8 * first) = word.range(15, 0);
        beat.keep.range(first + 1, first) = 0x3;
      } else {
        beat.data.range(32 * i + 31, 32 * i) = word;
        beat.keep.range(4 * i + 3, 4 * i) = 0xf;
      }
    }
    beat.last = group.last;
    const bool complete = !narrow || holding || group.last == 1;
    if (complete) m_axis.write(beat);
    holding = !complete;
    more = group.last == 0;
  }
}

}  // namespace

void float_to_int(hls::stream<FormatBeat>& s_axis, hls::stream<CutBeat>& m_axis) {
#pragma HLS INTERFACE mode = axis port = s_axis
#pragma HLS INTERFACE mode = axis port = m_axis
#pragma HLS INTERFACE mode = ap_ctrl_none port = return
#pragma HLS DATAFLOW
  hls::stream<Group> groups("groups");
#pragma HLS STREAM variable = groups depth = 2
  spread(s_axis, groups);
  quantize(groups, m_axis);
}

void int_to_float(hls::stream<FormatBeat>& s_axis, hls::stream<PlainBeat>& m_axis) {
#pragma HLS INTERFACE mode = axis port = s_axis
#pragma HLS INTERFACE mode = axis port = m_axis
#pragma HLS INTERFACE mode = ap_ctrl_none port = return
#pragma HLS DATAFLOW
  hls::stream<Group> groups("groups");
#pragma HLS STREAM variable = groups depth = 2
  dequantize(s_axis, groups);
  gather(groups, m_axis);
}

}  // namespace catchment::hls_model
