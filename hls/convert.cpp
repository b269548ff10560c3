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

// A group of elements becomes one of lanes: an integer in each word, and its flags.
struct CutGroup {
  Group lanes;
  ap_uint<kLanes> saturated;
  ap_uint<kLanes> nonfinite;
};

void quantize(hls::stream<Group>& groups, hls::stream<CutGroup>& integers) {
  bool more = true;
quantize_message:
  while (more) {
#pragma HLS PIPELINE II = 1
    const Group group = groups.read();
    CutGroup cut{{0, group.kept, group.last, group.format}, 0, 0};
  quantize_lanes:
    for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
      if (group.kept[i] == 0) continue;
      const ap_uint<32> word = group.words.range(32 * i + 31, 32 * i);
      const Lane lane = quantize_lane(word, group.format);
      cut.lanes.words.range(32 * i + 31, 32 * i) = ap_uint<32>(lane.value);
      cut.saturated[i] = lane.saturated;
      cut.nonfinite[i] = lane.nonfinite;
    }
    integers.write(cut);
    more = group.last == 0;
  }
}

// A group is a beat of lanes, or half a beat of packed ones, whose odd last half goes alone.  The
// first of two numbers lies in the high half of its lane.
void pack_lanes(hls::stream<CutGroup>& integers, hls::stream<CutBeat>& m_axis) {
  CutBeat beat;
  bool holding = false;
  bool more = true;
pack_message:
  while (more) {
#pragma HLS PIPELINE II = 1
    const CutGroup cut = integers.read();
    const bool pairs = cut.lanes.format.pairs == 1;
    if (!holding) {
      beat.data = 0;
      beat.keep = 0;
      beat.user = 0;
    }
    const int first = holding ? kLanes : 0;  // element of the beat
  pack_elements:
    for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
      if (cut.lanes.kept[i] == 0) continue;
      const ap_uint<32> word = cut.lanes.words.range(32 * i + 31, 32 * i);
      const int lane = pairs ? (first + i) / 2 : i;
      if (pairs) {
        const int half = 32 * lane + (i % 2 == 0 ? 16 : 0);
        beat.data.range(half + 15, half) = word.range(15, 0);
      } else {
        beat.data.range(32 * lane + 31, 32 * lane) = word;
      }
      beat.keep.range(4 * lane + 3, 4 * lane) = 0xf;
      beat.user[2 * kLanes + first + i] = cut.saturated[i];
      beat.user[first + i] = cut.nonfinite[i];
    }
    beat.last = cut.lanes.last;
    const bool complete = !pairs || holding || cut.lanes.last == 1;
    if (complete) m_axis.write(beat);
    holding = !complete;
    more = cut.lanes.last == 0;
  }
}

// A beat of packed lanes is two groups, the second only if it holds an element.
void dequantize(hls::stream<FormatBeat>& s_axis, hls::stream<Group>& groups) {
  FormatBeat lanes;
  bool second = false;
  bool more = true;
dequantize_message:
  while (more) {
#pragma HLS PIPELINE II = 1
    if (!second) lanes = s_axis.read();
    const Format format = unpack(lanes.user);
    const bool pairs = format.pairs == 1;
    const bool finished = second || !pairs || lanes.keep[kBeatBytes / 2] == 0;
    Group group{0, 0, 0, format};
  dequantize_lanes:
    for (int i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
      const int element = i + (second ? kLanes : 0);
      ap_int<32> lane(lanes.data.range(32 * i + 31, 32 * i));
      if (pairs) {
        const int half = 32 * (element / 2) + (i % 2 == 0 ? 16 : 0);
        lane = ap_int<32>(ap_int<16>(lanes.data.range(half + 15, half))) << 15;
      }
      group.words.range(32 * i + 31, 32 * i) = dequantize_lane(lane, format);
      group.kept[i] = lanes.keep[pairs ? 2 * element : 4 * i];
    }
    group.last = lanes.last == 1 && finished;
    groups.write(group);
    more = group.last == 0;
    second = !finished;
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
  hls::stream<CutGroup> integers("integers");
#pragma HLS STREAM variable = integers depth = 2
  spread(s_axis, groups);
  quantize(groups, integers);
  pack_lanes(integers, m_axis);
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
