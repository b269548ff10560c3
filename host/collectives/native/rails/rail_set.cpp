#include "rail_set.hpp"

#include <algorithm>
#include <utility>

#include "catchment/common/clock.hpp"
#include "mixing.hpp"

namespace catchment::host::rails {
namespace {

// How long a thread that waits for several rails stays with one of them.
constexpr Nanos kSlice = 50'000;
constexpr Nanos kLongest = 50 * kMillisecond;
// What is believed of a rail before it is used.
constexpr std::uint32_t kFirstStartNs = 100'000;
constexpr std::uint32_t kFirstBytesPerMs = 100'000;
// What a thread that waits spends at a time on an engine that may move to another port.
constexpr Nanos kStay = 5 * kMillisecond;

std::vector<RailCost> beliefs(const std::vector<Rail>& rails) {
  std::vector<RailCost> costs;
  for (const Rail& rail : rails) {
    const std::uint32_t rate = rail.nominal == 0 ? kFirstBytesPerMs : rail.nominal;
    costs.push_back({.start_ns = kFirstStartNs, .bytes_per_ms = rate, .nominal = rate});
  }
  return costs;
}

std::uint32_t setup_of(const std::vector<Rail>& rails, Policy policy) {
  std::uint64_t hash = mixed_in(kHashed, static_cast<std::uint64_t>(policy));
  for (const Rail& rail : rails) {
    for (const char letter : rail.name) hash = mixed_in(hash, static_cast<std::uint8_t>(letter));
    hash = mixed_in(hash, rail.nominal);
  }
  return folded(hash);
}

CollectiveFailure on_rail(CollectiveFailure failure, const std::string& rail) {
  if (!rail.empty()) failure.message = "rail " + rail + ": " + failure.message;
  return failure;
}

}  // namespace

RailSet::RailSet(std::vector<Rail> rails, Policy policy, Nanos timeout, Nanos absent,
                 std::shared_ptr<Bell> bell)
    : rails_(std::move(rails)),
      policy_(policy),
      timeout_(timeout),
      absent_(absent),
      table_(beliefs(rails_)),
      states_(rails_.size()),
      up_((1U << rails_.size()) - 1),
      up_since_(rails_.size()) {
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) states_[rail].carrier = rail;
  if (rails_.size() == 1) return;
  thread_ = std::thread([this] { run(); });
  std::vector<std::shared_ptr<Group>> controls;
  for (const Rail& rail : rails_) {
    if (rail.control != nullptr) controls.push_back(rail.control);
  }
  if (controls.size() != rails_.size()) return;
  council_ = std::make_unique<Council>(std::move(controls), setup_of(rails_, policy_),
                                       std::move(bell), static_cast<CouncilMember&>(*this));
}

RailSet::~RailSet() { close(0); }

std::shared_ptr<RailOperation> RailSet::start(Call call) {
  const bool alone = rails_.size() == 1;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!alone) lock.lock();
  auto operation = std::make_shared<RailOperation>(std::move(call), alone ? 0 : started_++);
  if (alone) {
    operation->parts_.push_back({0, rails_.front().group->start(operation->call_)});
    operation->planned_.store(true, std::memory_order_release);
    return operation;
  }
  waiting_.push_back(operation);
  plan_waiting();
  if (!waiting_.empty()) stirred_.notify_one();
  return operation;
}

bool RailSet::done(const RailOperation& operation) const {
  if (!operation.planned_.load(std::memory_order_acquire)) return false;
  return std::ranges::all_of(operation.parts_, [](const RailOperation::Part& part) {
    return part.operation->done.load(std::memory_order_acquire);
  });
}

bool RailSet::failed(const RailOperation& operation) const {
  if (!done(operation)) return false;
  return operation.refused_ ||
         std::ranges::any_of(operation.parts_, [](const RailOperation::Part& part) {
           return part.operation->outcome.failure.has_value();
         });
}

bool RailSet::wait(RailOperation& operation, Nanos limit) {
  if (rails_.size() == 1) return rails_.front().group->wait(*operation.parts_[0].operation, limit);
  const Nanos began = monotonic_now();
  const Nanos until = limit > kNever - began ? kNever : began + limit;
  for (Nanos now = began; !done(operation); now = monotonic_now()) {
    if (now >= until) return false;
    if (!operation.planned_.load(std::memory_order_acquire)) {
      std::shared_ptr<Report> report;
      {
        std::unique_lock lock(mutex_);
        plan_waiting();
        if (operation.planned_.load()) continue;
        if (frozen_ || reports_.empty()) {
          thawed_.wait_for(lock, std::chrono::nanoseconds(std::min(until - now, kStay)));
          continue;
        }
        report = reports_.front();
      }
      rails_.front().group->wait(*report->gathering, std::min(until - now, kLongest));
      continue;
    }
    const auto left = std::ranges::count_if(
        operation.parts_, [](const auto& part) { return !part.operation->done.load(); });
    for (const auto& part : operation.parts_) {
      const Nanos most = std::min(until - now, left > 1 ? kSlice : kStay);
      if (!part.operation->done.load()) rails_[part.rail].group->wait(*part.operation, most);
    }
  }
  return true;
}

bool RailSet::cancel(RailOperation& operation) {
  if (!operation.planned_.load(std::memory_order_acquire)) return false;
  bool any = false;
  for (const auto& part : operation.parts_) {
    any = rails_[part.rail].group->cancel(*part.operation) || any;
  }
  return any;
}

CollectiveOutcome RailSet::outcome(const RailOperation& operation) {
  if (rails_.size() == 1) return operation.parts_.front().operation->outcome;
  const std::scoped_lock lock(mutex_);
  CollectiveOutcome whole;
  whole.failure = operation.refused_;
  for (const auto& part : operation.parts_) {
    const CollectiveOutcome& outcome = part.operation->outcome;
    if (outcome.failure && !whole.failure) {
      whole.failure = on_rail(*outcome.failure, rails_[part.rail].name);
      const bool cut = outcome.failure->kind == "unreachable" || outcome.failure->kind == "missing";
      if (auto apart = cut ? nothing_joins(operation.started_at_) : std::nullopt) {
        whole.failure = std::move(apart);
      }
      if (broken_ && outcome.failure->message == broken_->message) whole.failure = broken_;
    }
    whole.latency = std::max(whole.latency, outcome.latency);
    whole.vectors += outcome.vectors;
    whole.retransmissions += outcome.retransmissions;
    whole.saturated += outcome.saturated;
    whole.nonfinite += outcome.nonfinite;
    whole.any_saturated = whole.any_saturated || outcome.any_saturated;
    whole.exponent = std::max(whole.exponent, outcome.exponent);
  }
  return whole;
}

std::optional<CollectiveFailure> RailSet::failure() {
  {
    const std::scoped_lock lock(mutex_);
    if (broken_) return broken_;
  }
  for (const Rail& rail : rails_) {
    if (auto failure = rail.group->failure()) return on_rail(std::move(*failure), rail.name);
  }
  return std::nullopt;
}

std::vector<RailState> RailSet::states() {
  const std::scoped_lock lock(mutex_);
  std::vector<RailState> states = states_;
  const std::vector<RailCost> costs = table_.costs(kShownBytes);
  for (std::size_t rail = 0; rail < states.size(); ++rail) states[rail].cost = costs[rail];
  return states;
}

std::uint32_t RailSet::table_version() {
  const std::scoped_lock lock(mutex_);
  return table_.version();
}

// Operations that wait for a report begin even if nobody waits for them.
void RailSet::run() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    plan_waiting();
    if (waiting_.empty() || frozen_ || reports_.empty()) {
      stirred_.wait(lock);
      continue;
    }
    const std::shared_ptr<Report> report = reports_.front();
    lock.unlock();
    rails_.front().group->wait(*report->gathering, kStay);
    lock.lock();
  }
}

void RailSet::close(Nanos linger) {
  const std::scoped_lock ending(ending_);
  // The council serves until the operations have settled: a rail may fail at the very end.
  for (const Rail& rail : rails_) rail.group->close(linger);
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    if (!broken_) {
      broken_ = {.kind = "closed",
                 .message = "the communicator is closed",
                 .hint = "make a new one",
                 .peers = 0,
                 .seq = std::nullopt,
                 .fatal = true};
    }
    plan_waiting();
  }
  stirred_.notify_one();
  thawed_.notify_all();
  thread_.join();
  if (council_) council_->close(linger);
}

}  // namespace catchment::host::rails
