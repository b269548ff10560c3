#include "council.hpp"

#include <algorithm>
#include <utility>

#include "catchment/common/clock.hpp"

namespace catchment::host::rails {
namespace {

// How often the council looks at rails that nobody has rung about.
constexpr Nanos kLook = 10 * kMillisecond;
constexpr Nanos kLookWhileOpen = 2 * kMillisecond;
// An operation that has waited for so long without any sum is reason for a round; while it goes on
// waiting, further ones are twice as far apart each time, up to the second.
constexpr Nanos kStalled = 15 * kMillisecond;
constexpr Nanos kLongestGap = 100 * kMillisecond;
// Rank 0 asks so often while a rail is down.
constexpr Nanos kReturnEvery = 100 * kMillisecond;
constexpr Nanos kPoll = 300 * kMicrosecond;
constexpr Nanos kNoTimeout = kNever / 4;
// A round that takes so long may be one that never comes.
constexpr Nanos kOverdue = 300 * kMillisecond;
constexpr std::uint32_t kRoundTag = 0x726f756e;

}  // namespace

void Bell::ring() {
  {
    const std::scoped_lock lock(mutex_);
    is_rung_ = true;
  }
  rung_.notify_one();
}

bool Bell::wait(Nanos limit) {
  std::unique_lock lock(mutex_);
  rung_.wait_for(lock, std::chrono::nanoseconds(limit), [this] { return is_rung_; });
  return std::exchange(is_rung_, false);
}

Council::Council(std::vector<std::shared_ptr<Group>> controls, std::uint32_t setup,
                 std::shared_ptr<Bell> bell, CouncilMember& member)
    : controls_(std::move(controls)),
      setup_(setup),
      bell_(std::move(bell)),
      member_(member),
      health_(static_cast<std::uint32_t>(controls_.size())),
      asked_(health_.up()) {
  thread_ = std::thread([this] { run(); });
}

Council::~Council() { close(0); }

void Council::close(Nanos linger) {
  closing_.store(true);
  bell_->ring();
  if (thread_.joinable()) thread_.join();
  for (const auto& control : controls_) control->close(linger);
}

void Council::run() {
  bool rung = true;  // the first round says that everybody is there
  while (!closing_.load()) {
    const Nanos now = monotonic_now();
    const Nanos slept = now - std::exchange(last_look_, now) - 2 * kLook;
    forget_done();
    for (const auto& gathering : pending_) gathering->lateness.excuse(slept);
    hear_rails();
    if (slept > 0) take_in_late_rounds(now);
    const bool down = health_.up() != (1U << controls_.size()) - 1;
    const bool returns = down && rank() == 0 && now - last_round_ >= kReturnEvery;
    const bool stalled = member_.stalled_for() >= kStalled;
    if (!stalled) stall_gap_ = kStalled;
    const bool asks = stalled && now - last_round_ >= stall_gap_;
    if (rung || returns || asks || (suspects(now) & health_.up()) != 0) {
      if (asks) stall_gap_ = std::min(2 * stall_gap_, kLongestGap);
      round(now);
    }
    const Nanos sleeps_at = monotonic_now();
    const Nanos limit = pending_.empty() ? kLook : kLookWhileOpen;
    rung = bell_->wait(limit);
    const Nanos woken_at = monotonic_now();
    own_lateness_.on_woken(woken_at, std::max<Nanos>(woken_at - sleeps_at - limit, 0));
  }
}

void Council::round(Nanos now) {
  last_round_ = now;
  const auto late_us =
      static_cast<std::uint32_t>(std::min(own_lateness_.worst(), kSecond) / kMicrosecond);
  const RoundRecord record{.planned = member_.freeze(),
                           .clock_ms = static_cast<std::uint64_t>(now / kMillisecond),
                           .suspected = suspects(now) & health_.up(),
                           .settled = settled(),
                           .setup = setup_,
                           .late_us = late_us};
  ++rounds_;
  std::vector<std::shared_ptr<Gathering>> started;
  for (std::uint32_t rail = 0; rail < controls_.size(); ++rail) {
    if ((asked_ >> rail & 1U) != 0) started.push_back(start(rail, record));
  }
  const std::shared_ptr<Gathering> first = first_of(started);
  if (!first) return;
  const Nanos done = monotonic_now();
  const Verdict verdict = health_.learn(first->all);
  const Nanos late = verdict.late_us * kMicrosecond;
  for (const auto& gathering : started) {
    gathering->lateness.start(done, done - now, late, (joined_ >> gathering->rail & 1U) != 0);
  }
  asked_ = verdict.asked;
  last_look_ = done;
  member_.decided(verdict, health_, joined_ | 1U << first->rail);
}

std::shared_ptr<Council::Gathering> Council::start(std::uint32_t rail, const RoundRecord& record) {
  auto gathering = std::make_shared<Gathering>();
  gathering->rail = rail;
  gathering->own = record;
  gathering->all.resize(controls_[rail]->layout().ranks);
  Call call;
  call.signature.kind = Kind::kAllGather;
  call.signature.elements = sizeof(RoundRecord);
  call.signature.tag = kRoundTag + rounds_;
  call.source = reinterpret_cast<const std::uint8_t*>(&gathering->own);
  call.target = reinterpret_cast<std::uint8_t*>(gathering->all.data());
  call.timeout = kNoTimeout;
  gathering->operation = controls_[rail]->start(std::move(call));
  pending_.push_back(gathering);
  return gathering;
}

std::shared_ptr<Council::Gathering> Council::first_of(
    const std::vector<std::shared_ptr<Gathering>>& round) {
  const Nanos began = monotonic_now();
  while (!closing_.load()) {
    bool waits = false;
    for (const auto& gathering : round) {
      const Operation& operation = *gathering->operation;
      if (!controls_[gathering->rail]->wait(operation, kPoll, false)) {
        waits = true;
      } else if (!operation.outcome.failure) {
        return gathering;
      }
    }
    if (!waits) bell_->wait(kLook);  // for close(): every stream has failed
    const Nanos now = monotonic_now();
    if (now - began < kOverdue) continue;
    Nanos away = kNever;
    for (const auto& control : controls_) away = std::min(away, control->away_for());
    member_.overdue(began, away);
  }
  return nullptr;
}

void Council::hear_rails() {
  for (const auto& gathering : pending_) {
    const Nanos sum_at = member_.last_sum_at(gathering->rail);
    const Nanos all_at = controls_[gathering->rail]->all_heard_at();
    gathering->lateness.heard(std::max(sum_at, all_at));
  }
}

// What has arrived while no thread of this rank was run is there to be taken.
void Council::take_in_late_rounds(Nanos now) {
  for (const auto& gathering : pending_) {
    if (gathering->lateness.late(now))
      controls_[gathering->rail]->wait(*gathering->operation, kPoll, false);
  }
  forget_done();
}

void Council::forget_done() {
  std::erase_if(pending_, [this](const std::shared_ptr<Gathering>& gathering) {
    const Operation& operation = *gathering->operation;
    const bool done = operation.done.load(std::memory_order_acquire);
    if (done) (operation.outcome.failure ? failed_ : joined_) |= 1U << gathering->rail;
    return done;
  });
}

std::uint32_t Council::suspects(Nanos now) const {
  std::uint32_t bits = failed_;
  for (const auto& gathering : pending_) {
    if (gathering->operation->done.load()) continue;
    if (gathering->lateness.late(now) || controls_[gathering->rail]->absent())
      bits |= 1U << gathering->rail;
  }
  return bits;
}

std::uint32_t Council::settled() const {
  std::uint32_t bits = ((1U << controls_.size()) - 1) & ~failed_;
  for (const auto& gathering : pending_) bits &= ~(1U << gathering->rail);
  return bits;
}

}  // namespace catchment::host::rails
