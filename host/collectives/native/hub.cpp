#include "hub.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <utility>

namespace catchment::host {
namespace {

// The longest sleep of a thread that nobody can wake.
constexpr Nanos kUnreachable = kMillisecond;
// What a thread looks out for besides the port: nothing.
const std::atomic<int> kNothing{0};
// A thread that has had the engines lets others in, once each; more of them may come.
constexpr int kMostYields = 64;
// Batches delivered to the shares of an attachment in one turn.
constexpr int kMostBatches = 4;

}  // namespace

Hub::Turn::Turn(Hub& hub) : hub_(hub) {
  hub_.wanted_.fetch_add(1);
  hub_.mutex_.lock();
  hub_.wanted_.fetch_sub(1);
}

Hub::Turn::~Turn() {
  hub_.sleepers_.wake_done();
  hub_.mutex_.unlock();
  for (int i = 0; i < kMostYields && hub_.wanted_.load() != 0; ++i) Processor::yield();
}

Hub::Hub(std::shared_ptr<ShmAttachment> attachment, Nanos spin, Nanos longest)
    : attachment_(std::move(attachment)),
      alone_(collective_patience(spin, true)),
      sharing_(collective_patience(spin, false)),
      longest_(longest) {
  thread_ = std::thread([this] {
    std::fesetenv(FE_DFL_ENV);  // denormals and rounding as the number formats need them
    run();
  });
}

Hub::~Hub() { stop(); }

void Hub::add(Engine& engine, ShmShare* share) {
  members_.push_back({.engine = &engine, .share = share});
  sleepers_.wake_one();  // who slept on nothing sleeps on its port
}

void Hub::remove(Engine& engine) {
  if (engine.unsent()) engine.flush();  // what is queued lies in the engine
  std::erase_if(members_, [&](const Member& member) { return member.engine == &engine; });
}

bool Hub::turn(Nanos now, IfTaken taken) {
  bool any = false;
  for (Member& member : members_) member.turned = false;
  for (int batch = 0; attachment_ != nullptr && batch < kMostBatches; ++batch) {
    const bool more = attachment_->deliver();
    for (Member& member : members_) {
      if (member.share != nullptr && member.share->has_frames()) any |= turn(member, now, taken);
    }
    if (!more) break;
  }
  for (Member& member : members_) {
    if (member.turned) continue;
    const bool asks = member.engine->busy() || member.engine->blocked() || member.due <= now;
    if (asks || member.share == nullptr) any |= turn(member, now, taken);
  }
  return any;
}

bool Hub::turn(Member& member, Nanos now, IfTaken taken) {
  const bool any = member.engine->turn(now, taken);
  member.due = member.engine->deadline();
  member.turned = true;
  return any;
}

void Hub::flush() {
  for (const Member& member : members_) {
    if (member.engine->unsent()) member.engine->flush();
  }
}

bool Hub::own_processor() const {
  const bool inside = attachment_ != nullptr && attachment_->inside();
  const auto needed = [inside](const Member& member) {
    return static_cast<int>(member.engine->layout().ranks) + (inside ? 0 : 1);
  };
  return std::ranges::all_of(members_,
                             [&](const Member& member) { return needed(member) <= processors_; });
}

bool Hub::busy() const {
  return std::ranges::any_of(members_, [](const Member& member) { return member.engine->busy(); });
}

void Hub::wait(const std::atomic<bool>& done, Nanos begun, Nanos until, bool spins) {
  Nanos now = monotonic_now();
  callers_.come(begun, now);
  Nanos quiet_since = now;
  Waiting next = Waiting::kSleep;
  bool moved = false;
  // One turn also for who only looks: while callers come, the own thread leaves it to them.
  for (bool turned = false; !done.load(std::memory_order_acquire) && (now < until || !turned);
       turned = true) {
    bool any = false;
    bool alone = false;
    {
      const Turn mine(*this);
      now = monotonic_now();
      any = turn(now, IfTaken::kLater);
      if (done.load(std::memory_order_acquire) || now >= until) flush();
      alone = own_processor();
      if (!any && attachment_ != nullptr && (alone || !sharing_.oversubscribed(now)) &&
          !std::exchange(moved, true)) {
        attachment_->move_apart();  // who is waited for may need this processor
      }
    }
    Patience& patience = alone ? alone_ : sharing_;
    if (any) {
      quiet_since = now;
      moved = false;
    } else if (spins && (next = patience.next(quiet_since, now)) != Waiting::kSleep) {
      patience.pass(next, monotonic_now());
    } else if (!done.load(std::memory_order_acquire)) {
      sleep(until, &done, nullptr);
    }
  }
  if (callers_.leave(now) && stirred_.load() != 0) wake();
  hand_on();
}

void Hub::sleep(Nanos until, const std::atomic<bool>* done, const std::atomic<int>* stop) {
  const Sleepers::Sleeper self(sleepers_, done);  // who looks for it after this wakes it
  const Nanos longest = self.descriptor() == -1 ? std::min(longest_, kUnreachable) : longest_;
  until = std::min(until, monotonic_now() + longest);
  std::array<pollfd, 2> ready{};
  ready[0].fd = -1;  // which ppoll() takes for none
  {
    const Turn mine(*this);
    if ((done != nullptr && done->load()) || (stop != nullptr && stop->load() != 0)) return;
    bool full = false;
    for (const Member& member : members_) {
      full |= member.engine->blocked();
      until = std::min(until, member.engine->deadline());
    }
    if (!members_.empty()) {
      Engine& any = *members_.front().engine;
      if (!any.may_sleep(full, stop == nullptr ? kNothing : *stop)) return;
      ready[0].fd = any.descriptor();
      ready[0].events = static_cast<short>(POLLIN | (full ? POLLOUT : 0));
    }
  }
  ready[1].fd = self.descriptor();
  ready[1].events = POLLIN;
  const Nanos left = std::max<Nanos>(until - monotonic_now(), 0);
  const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  ppoll(ready.data(), ready.size(), &timeout, nullptr);
}

void Hub::hand_on(bool begun) {
  if (begun && !callers_.begin(monotonic_now())) {
    wake();
  } else {
    sleepers_.wake_one();
  }
}

void Hub::wake() {
  {
    const std::scoped_lock resting(resting_);  // the own thread rests already, or sees it
    stirred_.store(1);
  }
  sleepers_.wake_all();
  rested_.notify_one();
}

void Hub::rest(Nanos longest) {
  std::unique_lock lock(resting_);
  rested_.wait_for(lock, std::chrono::nanoseconds(longest), [this] {
    return stop_.load() || (stirred_.load() != 0 && !callers_.waiting());
  });
}

void Hub::run() {
  Nanos quiet_since = monotonic_now();
  Nanos idle_since = quiet_since;
  while (!stop_.load()) {
    Nanos now = monotonic_now();
    if (callers_.waiting() || (callers_.given(now) && stirred_.load() == 0)) {
      rest(callers_.rest(now - idle_since));
      continue;
    }
    callers_.miss();
    stirred_.store(0);
    bool any = false;
    bool more = false;
    {
      const Turn mine(*this);
      now = monotonic_now();
      any = turn(now);
      more = busy();
    }
    if (any) {
      quiet_since = now;
    } else if (more && sharing_.next(quiet_since, now) != Waiting::kSleep) {
      sharing_.yield(monotonic_now());
    } else {
      sleep(kNever, nullptr, &stirred_);
    }
    idle_since = monotonic_now();
  }
}

void Hub::stop() {
  const std::scoped_lock stopping(stopping_);
  if (!thread_.joinable()) return;
  stop_.store(true);
  wake();
  thread_.join();
  const Turn mine(*this);
  attachment_.reset();
}

}  // namespace catchment::host
