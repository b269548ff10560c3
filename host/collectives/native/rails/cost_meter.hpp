// What one rank sees of what its rails cost, until it says so in a report
// (docs/explanation/rails.md, "What a rail costs").
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>

#include "cost_table.hpp"

namespace catchment::host::rails {

// How long a part took: up to the sum of its signatures, and to its last sum.
struct PartTimes {
  std::uint64_t agreed_ns = 0;
  std::uint64_t latency_ns = 0;
};

class CostMeter {
 public:
  // A part of `bytes` of the wire; one that is too short tells no rate.  All but what such a part
  // would carry at `believed` bytes/ms is then its start.
  void add_short(const RailSample& of, std::uint64_t bytes, const PartTimes& times,
                 std::uint32_t believed) {
    const std::uint64_t carried = bytes * kNanosPerMilli / std::max(believed, 1U);
    const std::uint64_t rest = times.latency_ns - std::min(carried, times.latency_ns);
    begin(of, std::max(rest, times.agreed_ns));
  }

  void add_long(const RailSample& of, std::uint64_t bytes, const PartTimes& times) {
    Seen& seen = begin(of, times.agreed_ns);
    seen.bytes += bytes;
    seen.duration_ns += times.latency_ns - times.agreed_ns;
  }

  // What was seen first, as far as there is room; what there is none for waits for the next report.
  void report(std::span<RailSample> room) {
    for (RailSample& sample : room) {
      if (seen_.empty()) return;
      sample = seen_.front().sample;
      const Seen& seen = seen_.front();
      if (seen.bytes != 0) {
        const std::uint64_t bytes = std::min(seen.bytes, kMostBytes);
        const std::uint64_t lasted = std::max<std::uint64_t>(seen.duration_ns, 1);
        sample.bytes_per_ms = bounded(bytes * kNanosPerMilli / lasted);
      }
      seen_.pop_front();
    }
  }

 private:
  static constexpr std::uint64_t kNanosPerMilli = 1'000'000;
  static constexpr std::uint64_t kMostBytes = 1ULL << 43;

  struct Seen {
    RailSample sample;
    std::uint64_t bytes = 0;        // of parts that are long enough to tell a rate
    std::uint64_t duration_ns = 0;  // in which they came
  };

  static std::uint32_t bounded(std::uint64_t value) {
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(value, 1, std::numeric_limits<std::uint32_t>::max()));
  }

  Seen& begin(const RailSample& of, std::uint64_t start_ns) {
    const auto is_same = [&](const Seen& seen) { return same(seen.sample, of); };
    auto found = std::ranges::find_if(seen_, is_same);
    if (found == seen_.end()) {
      seen_.push_back({.sample = of});
      found = seen_.end() - 1;
      found->sample.start_ns = std::numeric_limits<std::uint32_t>::max();
    }
    found->sample.start_ns = std::min(found->sample.start_ns, bounded(start_ns));
    return *found;
  }

  std::deque<Seen> seen_;
};

}  // namespace catchment::host::rails
