#include "rail_health.hpp"

#include <algorithm>
#include <bit>

namespace catchment::host::rails {
namespace {

// Milliseconds for which a rail that was down has to answer everybody; twice as long each time that
// it fails soon after its return.
constexpr std::uint64_t kProbation = 300;
constexpr std::uint64_t kLongestProbation = 60'000;
constexpr std::uint64_t kSoon = 10'000;
// So many rounds that have not come over a rail may wait there; more are not begun while it is
// down.
constexpr std::uint32_t kMostWaiting = 64;

}  // namespace

Verdict RailHealth::learn(std::span<const RoundRecord> records) {
  Verdict verdict;
  std::uint32_t suspected = 0;
  std::uint32_t settled = (1U << rails_.size()) - 1;
  const std::uint64_t now = records.front().clock_ms;
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    const RoundRecord& record = records[rank];
    verdict.from = std::max(verdict.from, record.planned);
    suspected |= record.suspected;
    settled &= record.settled;
    verdict.late_us = std::max(verdict.late_us, record.late_us);
    if (record.setup != records.front().setup) verdict.strangers |= std::uint64_t{1} << rank;
  }
  const std::uint32_t before = up_;
  // Something has carried this round.  Where it is none of the rails in use, those that have
  // brought all rounds take their place at once.
  const std::uint32_t rescue = settled & ~suspected & ~up_;
  if ((up_ & ~suspected) != 0) {
    up_ &= ~suspected;
  } else if (rescue != 0) {
    up_ = rescue;
  }
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
    State& state = rails_[rail];
    const std::uint32_t bit = 1U << rail;
    state.waiting = (settled & bit) != 0 ? 0 : state.waiting + 1;
    if ((up_ & ~before & bit) != 0) state.return_at(now);
    if ((before & ~up_ & bit) != 0) {
      const bool soon = state.returned && now - state.returned_at < kSoon;
      state.needed = soon ? std::min(2 * state.needed, kLongestProbation) : kProbation;
      state.good = false;
      continue;
    }
    if ((up_ & bit) != 0) continue;
    if ((settled & bit) == 0 || (suspected & bit) != 0) {
      state.good = false;
    } else if (!state.good) {
      state.good = true;
      state.good_since = now;
    } else if (now - state.good_since >= state.needed) {
      up_ |= bit;
      state.return_at(now);
    }
  }
  verdict.up = up_;
  verdict.changed = up_ != before;
  // A rail that is late with the last round is asked for the next one, too: it may be the only one
  // that lives then.
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
    const bool asked = (up_ >> rail & 1U) != 0 || rails_[rail].waiting < kMostWaiting;
    if (asked) verdict.asked |= 1U << rail;
  }
  return verdict;
}

Health RailHealth::of(std::uint32_t rail) const {
  if ((up_ >> rail & 1U) != 0) return Health::kUp;
  return rails_[rail].good ? Health::kProbation : Health::kDown;
}

std::uint32_t RailHealth::carrier(std::uint32_t rail) const {
  if ((up_ >> rail & 1U) != 0) return rail;
  return static_cast<std::uint32_t>(std::countr_zero(up_));
}

}  // namespace catchment::host::rails
