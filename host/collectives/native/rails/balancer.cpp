#include "balancer.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace catchment::host::rails {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kNanosPerMilli = 1'000'000;

struct Choice {
  std::uint32_t set = 0;
  std::uint64_t finish = 0;
};

std::uint32_t usable(std::span<const RailCost> rails) {
  std::uint32_t set = 0;
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {
    if (rails[rail].bytes_per_ms != 0) set |= 1U << rail;
  }
  return set;
}

// Of two sets that end at the same time the one with fewer rails, then with lower numbers.
bool before(const Choice& one, const Choice& other) {
  if (one.finish != other.finish) return one.finish < other.finish;
  const int rails = std::popcount(one.set);
  const int others = std::popcount(other.set);
  if (rails != others) return rails < others;
  const std::uint32_t differ = one.set ^ other.set;
  return (one.set & (differ & (~differ + 1U))) != 0;
}

// What a rail costs as one of `among` rails that carry an operation.
struct Cost {
  std::uint64_t start = 0;
  std::uint64_t rate = 0;
};

Cost cost_of(const RailCost& rail, int among) {
  if (among > 1 && rail.beside_bytes_per_ms != 0) {
    return {rail.beside_start_ns, rail.beside_bytes_per_ms};
  }
  return {rail.start_ns, rail.bytes_per_ms};
}

// Of the sets of `least` to `most` rails; none where all sets have a rail that begins too late.
Choice best(std::span<const RailCost> rails, std::span<const std::uint32_t> together_ns,
            std::uint64_t bytes, int most, int least = 1) {
  const std::uint32_t all = usable(rails);
  Choice chosen;
  for (std::uint32_t set = 1; set <= all; ++set) {
    const int count = std::popcount(set);
    if ((set & ~all) != 0 || count > most || count < least) continue;
    const std::uint64_t finish = finish_ns(rails, set, bytes);
    if (finish == 0) continue;
    const Choice choice{set, finish + together_ns[static_cast<std::size_t>(count) - 1]};
    if (chosen.set == 0 || before(choice, chosen)) chosen = choice;
  }
  return chosen;
}

using Weights = std::array<std::uint64_t, kMostRails>;

// Elements by weight over the rails of `set`: whole granules, and what is left over to the rail
// that has most.  Where nothing has a weight, the first rail takes all.
std::vector<Share> by_weight(Weights weights, std::uint32_t set, std::uint64_t elements) {
  Wide sum = 0;
  for (const std::uint64_t weight : weights) sum += weight;
  if (sum == 0) sum = weights[static_cast<std::size_t>(std::countr_zero(set))] = 1;
  Weights counts{};
  std::uint64_t left = elements;
  for (std::size_t rail = 0; rail < kMostRails; ++rail) {
    const auto exact = static_cast<std::uint64_t>(Wide{elements} * weights[rail] / sum);
    counts[rail] = exact / kGranule * kGranule;
    left -= counts[rail];
  }
  const auto most = std::ranges::max_element(weights) - weights.begin();
  counts[static_cast<std::size_t>(most)] += left / kGranule * kGranule;
  std::vector<Share> shares;
  std::uint64_t first = 0;
  for (std::uint32_t rail = 0; rail < kMostRails; ++rail) {
    if (counts[rail] == 0) continue;
    shares.push_back({rail, first, counts[rail]});
    first += counts[rail];
  }
  if (shares.empty()) return {{static_cast<std::uint32_t>(most), 0, elements}};
  shares.back().elements += elements - first;
  return shares;
}

// The shares with which all rails of `set` end together: B_i (T - L_i) of rail i.
std::vector<Share> filled(std::span<const RailCost> rails, std::uint32_t set,
                          std::uint64_t elements) {
  const std::uint64_t finish = finish_ns(rails, set, elements * kWireBytes);
  Weights weights{};
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {
    if ((set >> rail & 1U) == 0) continue;
    const Cost cost = cost_of(rails[rail], std::popcount(set));
    weights[rail] =
        static_cast<std::uint64_t>(Wide{cost.rate} * (finish - cost.start) / kNanosPerMilli);
  }
  return by_weight(weights, set, elements);
}

std::uint64_t alone_ns(const RailCost& rail, std::uint64_t bytes) {
  return rail.start_ns +
         static_cast<std::uint64_t>(Wide{bytes} * kNanosPerMilli / rail.bytes_per_ms);
}

std::vector<Share> waterfill(std::span<const RailCost> rails,
                             std::span<const std::uint32_t> together_ns, std::uint64_t elements,
                             int most) {
  return filled(rails, best(rails, together_ns, elements * kWireBytes, most).set, elements);
}

// Equation 8 over the rails that equation 3 lets in, if that ends before the best one alone.
std::vector<Share> paper(std::span<const RailCost> rails,
                         std::span<const std::uint32_t> together_ns, std::uint64_t elements) {
  const std::uint64_t bytes = elements * kWireBytes;
  const Choice single = best(rails, together_ns, bytes, 1);
  std::uint32_t set = 0;
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {
    if (rails[rail].bytes_per_ms == 0) continue;
    if (alone_ns(rails[rail], bytes) <= kMostRatio * single.finish) set |= 1U << rail;
  }
  const auto count = static_cast<std::uint64_t>(std::popcount(set));
  if (count < 2) return waterfill(rails, together_ns, elements, 1);
  Weights times{};
  std::uint64_t sum = 0;
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {
    if ((set >> rail & 1U) != 0) sum += times[rail] = alone_ns(rails[rail], bytes / count);
  }
  Weights weights{};
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {
    if ((set >> rail & 1U) != 0) weights[rail] = sum - times[rail];
  }
  const std::vector<Share> shares = by_weight(weights, set, elements);
  std::uint64_t finish = 0;
  for (const Share& share : shares) {
    finish = std::max(finish, alone_ns(rails[share.rail], share.elements * kWireBytes));
  }
  if (finish + together_ns[count - 1] < single.finish) return shares;
  return waterfill(rails, together_ns, elements, 1);
}

std::uint32_t rails_of(const std::vector<Share>& shares) {
  std::uint32_t set = 0;
  for (const Share& share : shares) set |= 1U << share.rail;
  return set;
}

std::vector<Share> fixed(std::span<const RailCost> rails, std::uint64_t elements) {
  Weights weights{};
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {
    if (rails[rail].bytes_per_ms != 0) weights[rail] = std::max(rails[rail].nominal, 1U);
  }
  return by_weight(weights, usable(rails), elements);
}

std::vector<Share> slices(std::span<const RailCost> rails, std::uint64_t elements) {
  const std::uint32_t set = usable(rails);
  std::vector<Share> shares;
  std::uint32_t left = 0;
  for (std::uint64_t first = 0; first < elements; first += kSliceElements) {
    if (left == 0) left = set;
    const auto rail = static_cast<std::uint32_t>(std::countr_zero(left));
    left &= left - 1;
    shares.push_back({rail, first, std::min(kSliceElements, elements - first)});
  }
  return shares;
}

}  // namespace

std::uint64_t finish_ns(std::span<const RailCost> rails, std::uint32_t set, std::uint64_t bytes) {
  Wide waited = Wide{bytes} * kNanosPerMilli;
  std::uint64_t rate = 0;
  std::uint64_t latest = 0;
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {
    if ((set >> rail & 1U) == 0) continue;
    const Cost cost = cost_of(rails[rail], std::popcount(set));
    rate += cost.rate;
    waited += Wide{cost.rate} * cost.start;
    latest = std::max(latest, cost.start);
  }
  if (rate == 0) return 0;
  const auto finish = static_cast<std::uint64_t>(waited / rate);
  return finish < latest ? 0 : std::max<std::uint64_t>(finish, 1);
}

std::vector<Share> split(std::span<const RailCost> rails,
                         std::span<const std::uint32_t> together_ns, Policy policy,
                         std::uint64_t elements) {
  if (elements == 0) return {};
  switch (policy) {
    case Policy::kPaper:
      return paper(rails, together_ns, elements);
    case Policy::kFixed:
      return fixed(rails, elements);
    case Policy::kSlices:
      return slices(rails, elements);
    case Policy::kSingle:
      return waterfill(rails, together_ns, elements, 1);
    case Policy::kWaterfill:
      break;
  }
  return waterfill(rails, together_ns, elements, static_cast<int>(kMostRails));
}

std::vector<Share> tried(std::span<const RailCost> rails,
                         std::span<const std::uint32_t> together_ns, Policy policy,
                         std::uint64_t elements, std::uint64_t sample, std::uint64_t turn) {
  if (elements == 0) return {};
  const std::uint64_t bytes = elements * kWireBytes;
  const bool splits = policy == Policy::kWaterfill || policy == Policy::kPaper;
  const int most = splits && elements > kGranule ? static_cast<int>(kMostRails) : 1;
  const std::uint32_t used = rails_of(split(rails, together_ns, policy, elements));
  const std::uint64_t bound = kMostTried * best(rails, together_ns, bytes, most).finish;
  std::vector<std::uint32_t> options;
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {
    if (rails[rail].bytes_per_ms == 0 || used == 1U << rail) continue;
    if (alone_ns(rails[rail], bytes) <= bound) options.push_back(1U << rail);
  }
  if (std::has_single_bit(used)) {
    const Choice several = best(rails, together_ns, bytes, most, 2);
    if (several.set != 0 && several.finish <= bound) options.push_back(several.set);
  }
  std::vector<Share> beside;
  std::vector<std::uint32_t> idle;
  std::uint64_t kept = 0;
  if (sample != 0 && sample <= elements) {
    kept = (elements - sample) / kGranule * kGranule;
    beside = split(rails, together_ns, policy, kept);
  }
  for (std::uint32_t rail = 0; !beside.empty() && rail < rails.size(); ++rail) {
    const bool busy = (rails_of(beside) >> rail & 1U) != 0;
    if (rails[rail].bytes_per_ms != 0 && !busy) idle.push_back(rail);
  }
  const std::uint64_t places = options.size() + (idle.empty() ? 0 : 1);
  if (places == 0) return {};
  if (turn % places < options.size()) return filled(rails, options[turn % places], elements);
  beside.push_back({idle[turn / places % idle.size()], kept, elements - kept});
  return beside;
}

}  // namespace catchment::host::rails
