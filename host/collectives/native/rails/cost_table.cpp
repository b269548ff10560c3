#include "cost_table.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace catchment::host::rails {
namespace {

// What a further rail costs: one more signature, and a thread that serves one more port.
constexpr std::uint32_t kTogetherNs = 50'000;
// The first reports count for a half, so that a wrong belief goes soon, later ones for an eighth.
constexpr std::uint32_t kEarlyReports = 8;
constexpr std::uint64_t kEarlyParts = 2;
constexpr std::uint64_t kLateParts = 8;

std::uint32_t bounded(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(value, 1, std::numeric_limits<std::uint32_t>::max()));
}

std::uint32_t mixed(std::uint64_t old, std::uint64_t measured, std::uint32_t reports) {
  if (reports == 0) return bounded(measured);
  const std::uint64_t parts = reports < kEarlyReports ? kEarlyParts : kLateParts;
  return bounded((old * (parts - 1) + measured) / parts);
}

}  // namespace

CostTable::CostTable(std::vector<RailCost> costs)
    : costs_(std::move(costs)), learnt_(costs_.size()) {
  for (std::uint32_t more = 0; more < costs_.size(); ++more) {
    together_ns_.push_back(more * kTogetherNs);
  }
}

void CostTable::learn(std::span<const RailSample> samples) {
  constexpr std::uint64_t kNanosPerMilli = 1'000'000;
  ++version_;
  for (std::size_t rail = 0; rail < costs_.size(); ++rail) {
    // A rail is as fast as for its slowest rank.
    std::uint64_t rate = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t start = 0;
    for (std::size_t at = rail; at < samples.size(); at += costs_.size()) {
      const RailSample& sample = samples[at];
      const std::uint64_t lasted = std::max<std::uint64_t>(sample.duration_ns, 1);
      const auto bytes = std::min<std::uint64_t>(sample.bytes, 1ULL << 43);
      rate = std::min(rate, bytes * kNanosPerMilli / lasted);
      start = std::max(start, sample.start_ns);
    }
    if (rate == 0 || samples.size() < costs_.size()) continue;  // a rank has not used it
    costs_[rail].bytes_per_ms = mixed(costs_[rail].bytes_per_ms, rate, learnt_[rail]);
    costs_[rail].start_ns = mixed(costs_[rail].start_ns, start, learnt_[rail]);
    ++learnt_[rail];
  }
}

}  // namespace catchment::host::rails
