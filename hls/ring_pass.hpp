// A pass of the sync core as a kernel (docs/explanation/sync-core.md).
#pragma once

#include <ap_int.h>
#include <hls_stream.h>

namespace catchment::hls_model {

using Entry = ap_uint<512>;  // 16 lanes of int32, lane 0 in the low bits

struct RingChunk {
  ap_uint<4> position;  // of this device, counted in the direction in which entries go
  ap_uint<4> last;      // number of devices, less one
  ap_uint<16> entries;
  ap_uint<16> segment;  // entries / devices, rounded up
  ap_uint<1> maximum;   // else sums
};

// Pass `pass` of 0 .. 2 * last of a chunk: the first one sends this device's segment, those up to
// `last` send on what comes with their own added, the others pass sums on; from `last` on sums are
// written back, and the last pass sends nothing.
void ring_pass(const RingChunk& chunk, ap_uint<5> pass, Entry* memory, hls::stream<Entry>& from,
               hls::stream<Entry>& to);

}  // namespace catchment::hls_model
