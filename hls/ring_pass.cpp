#include "ring_pass.hpp"

namespace catchment::hls_model {
namespace {

Entry combined(const Entry& a, const Entry& b, bool maximum) {
  Entry result = 0;
  for (int lane = 0; lane < 16; ++lane) {
#pragma HLS UNROLL
    const ap_int<32> x = ap_uint<32>(a.range(32 * lane + 31, 32 * lane));
    const ap_int<32> y = ap_uint<32>(b.range(32 * lane + 31, 32 * lane));
    const ap_int<32> sum = x + y;
    const ap_int<32> larger = x > y ? x : y;
    result.range(32 * lane + 31, 32 * lane) = ap_uint<32>(maximum ? larger : sum);
  }
  return result;
}

}  // namespace

void ring_pass(const RingChunk& chunk, ap_uint<5> pass, Entry* memory, hls::stream<Entry>& from,
               hls::stream<Entry>& to) {
#pragma HLS INTERFACE axis port = from
#pragma HLS INTERFACE axis port = to
#pragma HLS INTERFACE m_axi port = memory
  const int devices = chunk.last.to_int() + 1;
  const int step = pass.to_int();
  // Each pass handles the segment before that of the pass before.
  const int index = (chunk.position.to_int() - step + 2 * devices) % devices;
  const int first = index * chunk.segment.to_int();
  const int end = first + chunk.segment.to_int();
  const int stop = end < chunk.entries.to_int() ? end : chunk.entries.to_int();
  for (int at = first; at < stop; ++at) {
#pragma HLS PIPELINE II = 1
    Entry entry = step == 0 ? memory[at] : from.read();
    if (step != 0 && step <= chunk.last.to_int())
      entry = combined(entry, memory[at], chunk.maximum == 1);
    if (step >= chunk.last.to_int()) memory[at] = entry;
    if (step != 2 * chunk.last.to_int()) to.write(entry);
  }
}

}  // namespace catchment::hls_model
