// A ring of sync cores' kernels behind a C function, for the tests of the RTL.
#include <cstdint>
#include <vector>

#include "ring_pass.hpp"

using catchment::hls_model::Entry;
using catchment::hls_model::RingChunk;

// One chunk that is all of each device's memory: `words` has (devices, entries, 16) lanes.
extern "C" void hls_ring(std::uint32_t* words, std::uint32_t devices, std::uint32_t entries,
                         std::uint32_t maximum) {
  constexpr std::uint32_t kLanes = 16;
  std::vector<std::vector<Entry>> memories(devices, std::vector<Entry>(entries));
  for (std::uint32_t i = 0; i < devices * entries * kLanes; ++i) {
    const std::uint32_t lane = i % kLanes;
    memories[i / kLanes / entries][i / kLanes % entries].range(32 * lane + 31, 32 * lane) =
        words[i];
  }
  std::vector<hls::stream<Entry>> links(devices);  // link i leads to device i + 1
  for (std::uint32_t pass = 0; pass <= 2 * (devices - 1); ++pass) {
    std::vector<hls::stream<Entry>> sent(devices);
    for (std::uint32_t i = 0; i < devices; ++i) {
      const RingChunk chunk{i, devices - 1, entries, (entries + devices - 1) / devices, maximum};
      ring_pass(chunk, pass, memories[i].data(), links[(i + devices - 1) % devices], sent[i]);
    }
    for (std::uint32_t i = 0; i < devices; ++i)
      while (!sent[i].empty()) links[i].write(sent[i].read());
  }
  for (std::uint32_t i = 0; i < devices * entries * kLanes; ++i) {
    const std::uint32_t lane = i % kLanes;
    // A shift, as g++ warns over the headers' range of a lane that is not a constant.
    words[i] =
        ap_uint<32>(memories[i / kLanes / entries][i / kLanes % entries] >> 32 * lane).to_uint();
  }
}
