// What a set of rails does while its council agrees about one that fails, and after it.
#include <algorithm>
#include <utility>

#include "catchment/common/clock.hpp"
#include "rail_set.hpp"

namespace catchment::host::rails {

std::uint64_t RailSet::freeze() {
  const std::scoped_lock lock(mutex_);
  frozen_ = true;
  return waiting_.empty() ? started_ : waiting_.front()->number_;
}

void RailSet::decided(const Verdict& verdict, const RailHealth& health, std::uint32_t joined) {
  for (std::uint32_t rail = 0; verdict.changed && rail < rails_.size(); ++rail) {
    const std::uint32_t carrier = health.carrier(rail);
    const Nanos waited = rails_[rail].group->stalled_for();
    std::uint32_t& now = states_[rail].carrier;  // which no other thread changes
    auto& ways = rails_[rail].ways;
    if (carrier == now || ways.size() != rails_.size()) continue;
    if (!rails_[rail].group->move(ways[now], ways[carrier])) continue;
    const std::scoped_lock lock(mutex_);
    now = carrier;
    if (carrier == rail) continue;
    ++states_[rail].incidents;
    states_[rail].last_incident = waited;
  }
  {
    const std::scoped_lock lock(mutex_);
    frozen_ = false;
    overdue_since_ = kNever;
    if (verdict.changed) changes_.push_back({verdict.from, verdict.up});
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
      states_[rail].health = health.of(rail);
      states_[rail].joined = (joined >> rail & 1U) != 0;
    }
    if (verdict.strangers != 0 && !broken_) {
      broken_ = {.kind = "mismatch",
                 .message = ranks_in(verdict.strangers) +
                            ": other rails, rates or another policy than rank 0 has",
                 .hint = "all ranks must name the same rails in the same order, and one policy",
                 .peers = verdict.strangers,
                 .seq = std::nullopt,
                 .fatal = true};
    }
    plan_waiting();
  }
  thawed_.notify_all();
  stirred_.notify_one();
}

void RailSet::fail_all(const CollectiveFailure& failure) {
  {
    const std::scoped_lock lock(mutex_);
    if (broken_) return;
    broken_ = failure;
    plan_waiting();
  }
  for (const Rail& rail : rails_) rail.group->fail(failure);
  thawed_.notify_all();
}

void RailSet::overdue(Nanos began, Nanos away) {
  if (absent_ != 0 && away >= absent_) {
    CollectiveFailure failure{.kind = "unreachable",
                              .message = "no rail has a switch that answers:",
                              .hint = "are the switches running, and this host's links up?",
                              .peers = 0,
                              .seq = std::nullopt,
                              .fatal = true};
    for (const Rail& rail : rails_) {
      failure.message += (&rail == &rails_.front() ? " " : ", ") + rail.name;
    }
    fail_all(failure);
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    overdue_since_ = began;
    if (waiting_.empty() || broken_) return;
    const RailOperation& first = *waiting_.front();
    const Nanos limit = first.call_.timeout != 0 ? first.call_.timeout : timeout_;
    if (monotonic_now() - first.started_at_ < limit) return;
    broken_ = nothing_joins(first.started_at_);
    if (!broken_) {
      broken_ = {.kind = "missing",
                 .message = "the ranks have not agreed within the timeout which rails they use",
                 .hint = "has a rank been stopped, or does its machine have too much to do?",
                 .peers = 0,
                 .seq = std::nullopt,
                 .fatal = true};
    }
    plan_waiting();
  }
  thawed_.notify_all();
}

std::optional<CollectiveFailure> RailSet::nothing_joins(Nanos since) const {
  if (overdue_since_ == kNever) return std::nullopt;
  CollectiveFailure failure{.kind = "missing",
                            .message = "no rail joins all ranks",
                            .hint = "have ranks ended, or have links of all rails failed?",
                            .peers = 0,
                            .seq = std::nullopt,
                            .fatal = true};
  for (const Rail& rail : rails_) {
    const auto gone = rail.control->missing_ranks(std::max(since, overdue_since_));
    if (gone == std::uint64_t{0}) return std::nullopt;
    failure.message += (&rail == &rails_.front() ? ": on rail " : "; on rail ") + rail.name + " " +
                       (gone ? ranks_in(*gone) + " cannot be heard" : "the switch is silent");
    failure.peers |= gone.value_or(0);
  }
  if (failure.peers == 0) return std::nullopt;
  return failure;
}

Nanos RailSet::stalled_for() {
  Nanos longest = 0;
  for (const Rail& rail : rails_) longest = std::max(longest, rail.group->stalled_for());
  return longest;
}

Nanos RailSet::last_sum_at(std::uint32_t rail) {
  // Only the council's thread, which asks, changes the carrier.
  return states_[rail].carrier == rail ? rails_[rail].group->last_sum_at() : 0;
}

}  // namespace catchment::host::rails
