#include "cost_table.hpp"

#include <algorithm>
#include <bit>
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

// The first of `samples` about what `asked` is about.
const RailSample* about(const RailSample& asked, std::span<const RailSample> samples) {
  const auto found =
      std::ranges::find_if(samples, [&](const RailSample& one) { return same(one, asked); });
  return found == samples.end() ? nullptr : &*found;
}

}  // namespace

std::uint32_t size_class(std::uint64_t bytes) {
  const auto bits = bytes == 0 ? 0U : static_cast<std::uint32_t>(std::bit_width(bytes - 1));
  return std::clamp(bits, kLeastClass, kMostClass);
}

void CostTable::Mean::learn(std::uint64_t measured) {
  const std::uint64_t parts = reports == 0 ? 1 : reports < kEarlyReports ? kEarlyParts : kLateParts;
  const std::uint64_t mixed = (value * (parts - 1) + measured) / parts;
  value = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(mixed, 1, std::numeric_limits<std::uint32_t>::max()));
  ++reports;
}

CostTable::CostTable(std::vector<RailCost> believed)
    : believed_(std::move(believed)), alone_(believed_.size()), beside_(believed_.size()) {
  for (std::uint32_t more = 0; more < believed_.size(); ++more) {
    together_ns_.push_back(more * kTogetherNs);
  }
}

void CostTable::learn(std::span<const RailSample> samples, std::size_t each) {
  ++version_;
  const auto first = samples.first(each);
  for (const RailSample& asked : first) {
    const bool known = asked.rail < believed_.size() && asked.size_class >= kLeastClass &&
                       asked.size_class <= kMostClass && asked.beside <= 1;
    if (!known || about(asked, first) != &asked) continue;
    // A rail is as fast as for its slowest rank.
    std::uint32_t start = asked.start_ns;
    std::uint32_t rate = asked.bytes_per_ms;
    bool all = true;
    for (std::size_t at = each; all && at < samples.size(); at += each) {
      const RailSample* const sample = about(asked, samples.subspan(at, each));
      all = sample != nullptr;
      if (!all) break;
      start = std::max(start, sample->start_ns);
      rate = std::min(rate, sample->bytes_per_ms);
    }
    if (!all) continue;
    Known& of_rail = (asked.beside != 0 ? beside_ : alone_)[asked.rail];
    of_rail.starts[asked.size_class].learn(start);
    if (rate != 0) of_rail.rates[asked.size_class].learn(rate);
  }
}

std::uint32_t CostTable::nearest(const Means& means, std::uint32_t size_class) {
  for (std::uint32_t away = 0; away <= kMostClass; ++away) {
    for (const std::uint32_t at : {size_class - std::min(away, size_class), size_class + away}) {
      if (at < kClasses && means[at].reports != 0) return means[at].value;
    }
  }
  return 0;
}

std::vector<RailCost> CostTable::costs(std::uint64_t bytes) const {
  const auto first_of = [](std::uint32_t one, std::uint32_t other) { return one ? one : other; };
  const std::uint32_t of_class = size_class(bytes);
  std::vector<RailCost> costs = believed_;
  for (std::size_t rail = 0; rail < costs.size(); ++rail) {
    RailCost& cost = costs[rail];
    cost.beside_start_ns = nearest(beside_[rail].starts, of_class);
    cost.beside_bytes_per_ms = nearest(beside_[rail].rates, of_class);
    const std::uint32_t start = nearest(alone_[rail].starts, of_class);
    const std::uint32_t rate = nearest(alone_[rail].rates, of_class);
    cost.start_ns = first_of(start, first_of(cost.beside_start_ns, cost.start_ns));
    cost.bytes_per_ms = first_of(rate, first_of(cost.beside_bytes_per_ms, cost.bytes_per_ms));
    cost.beside_start_ns = first_of(cost.beside_start_ns, cost.start_ns);
    cost.beside_bytes_per_ms = first_of(cost.beside_bytes_per_ms, cost.bytes_per_ms);
  }
  return costs;
}

}  // namespace catchment::host::rails
