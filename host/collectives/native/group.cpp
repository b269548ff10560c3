#include "group.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cfenv>
#include <system_error>
#include <utility>

namespace catchment::host {
namespace {

// The longest sleep of a thread; the second where another thread may receive what it waits for.
constexpr Nanos kLongest = 50 * kMillisecond;
constexpr Nanos kShared = kMillisecond;
// How long the group's own thread leaves the protocol to a caller that has just waited and may wait
// again soon.
constexpr Nanos kCallerGrace = kMillisecond;
// What a thread looks out for that is not the group's own: nothing but the port.
const std::atomic<int> kNothing{0};
// A thread that has had the engine lets others in, once each; more of them may come.
constexpr int kMostYields = 64;

}  // namespace

class Group::Turn {
 public:
  explicit Turn(Group& group) : group_(group) {
    group_.wanted_.fetch_add(1);
    group_.mutex_.lock();
    group_.wanted_.fetch_sub(1);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    group_.mutex_.unlock();
    for (int i = 0; i < kMostYields && group_.wanted_.load() != 0; ++i) Processor::yield();
  }

 private:
  Group& group_;
};

Group::Group(EngineConfig config, std::unique_ptr<Port> port, Nanos spin)
    : engine_(std::move(config), std::move(port)),
      patience_(collective_patience(spin)),
      wakeup_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd") {
  thread_ = std::thread([this] {
    std::fesetenv(FE_DFL_ENV);  // denormals and rounding as the number formats need them
    run();
  });
}

Group::~Group() { close(0); }

std::shared_ptr<Operation> Group::start(Call call) {
  auto operation = std::make_shared<Operation>(std::move(call));
  {
    const Turn turn(*this);
    const Nanos now = monotonic_now();
    engine_.start(operation, now);
    engine_.turn(now);
  }
  const bool waited_lately = monotonic_now() - waited_at_.load() < kCallerGrace;
  if (!operation->done.load() && waiters_.load() == 0 && !waited_lately) wake();
  return operation;
}

bool Group::wait(const Operation& operation, Nanos limit) {
  if (operation.done.load(std::memory_order_acquire)) return true;
  const Nanos began = monotonic_now();
  const Nanos until = limit > kNever - began ? kNever : began + limit;
  waiters_.fetch_add(1);
  Nanos quiet_since = began;
  Nanos now = began;
  while (!operation.done.load(std::memory_order_acquire) && now < until) {
    bool any = false;
    {
      const Turn turn(*this);
      now = monotonic_now();
      any = engine_.turn(now);
    }
    if (any) {
      quiet_since = now;
    } else if (patience_.next(quiet_since, now) != Waiting::kSleep) {
      patience_.yield(monotonic_now());
    } else if (!operation.done.load(std::memory_order_acquire)) {
      sleep(std::min(until, now + (waiters_.load() > 1 ? kShared : kLongest)), kNothing);
    }
  }
  waited_at_.store(now);
  waiters_.fetch_sub(1);
  return operation.done.load(std::memory_order_acquire);
}

void Group::sleep(Nanos until, const std::atomic<int>& stop) {
  std::array<pollfd, 2> ready{};
  {
    const Turn turn(*this);
    if (!engine_.may_sleep(stop)) return;
    until = std::min(until, engine_.deadline());
    ready[0].fd = engine_.descriptor();
    ready[0].events = static_cast<short>(POLLIN | (engine_.blocked() ? POLLOUT : 0));
  }
  ready[1].fd = wakeup_.get();
  ready[1].events = POLLIN;
  const Nanos left = std::max<Nanos>(until - monotonic_now(), 0);
  const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  ppoll(ready.data(), ready.size(), &timeout, nullptr);
  if (ready[1].revents == 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = read(wakeup_.get(), &count, sizeof count);
}

void Group::wake() {
  stirred_.store(1);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(wakeup_.get(), &one, sizeof one);
  rested_.notify_one();
}

void Group::run() {
  Nanos quiet_since = monotonic_now();
  while (!stop_.load()) {
    Nanos now = monotonic_now();
    if (waiters_.load() != 0 || (now - waited_at_.load() < kCallerGrace && stirred_.load() == 0)) {
      std::unique_lock lock(resting_);
      rested_.wait_for(lock, std::chrono::nanoseconds(kCallerGrace));
      continue;
    }
    stirred_.store(0);
    bool any = false;
    bool busy = false;
    {
      const Turn turn(*this);
      now = monotonic_now();
      any = engine_.turn(now);
      busy = engine_.busy();
    }
    if (any) {
      quiet_since = now;
    } else if (busy && patience_.next(quiet_since, now) != Waiting::kSleep) {
      patience_.yield(monotonic_now());
    } else {
      sleep(now + kLongest, stirred_);
    }
  }
}

bool Group::cancel(Operation& operation) {
  const Turn turn(*this);
  return engine_.cancel(operation);
}

std::optional<CollectiveFailure> Group::failure() {
  const Turn turn(*this);
  return engine_.failure();
}

void Group::close(Nanos linger) {
  const std::scoped_lock closing(closing_);
  if (!thread_.joinable()) return;
  const Nanos until = monotonic_now() + linger;
  bool broken = false;
  {
    const Turn turn(*this);
    broken = engine_.failure().has_value() || engine_.busy();
  }
  // The others may not have the last sums yet, nor know that this rank has them.
  while (!broken && monotonic_now() < until) {
    bool settled = false;
    {
      const Turn turn(*this);
      engine_.turn(monotonic_now());
      settled = engine_.settled();
    }
    if (settled) break;
    sleep(std::min(until, monotonic_now() + kMillisecond), kNothing);
  }
  {
    const Turn turn(*this);
    engine_.fail({.kind = "closed",
                  .message = "the communicator is closed",
                  .hint = "make a new one",
                  .peers = 0,
                  .seq = std::nullopt,
                  .fatal = true},
                 monotonic_now());
  }
  stop_.store(true);
  wake();
  thread_.join();
  const Turn turn(*this);
  engine_.release_port();  // the next communicator may want it
}

}  // namespace catchment::host
