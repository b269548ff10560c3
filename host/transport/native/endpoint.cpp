#include "endpoint.hpp"

#include <pthread.h>

#include <algorithm>
#include <cfenv>
#include <utility>

namespace catchment::host {

Endpoint::Endpoint(EndpointConfig config, std::unique_ptr<Port> port)
    : config_(std::move(config)),
      port_(std::move(port)),
      poller_(port_->descriptor()),
      member_(config_, *port_, stats_) {
  thread_ = std::thread([this] { run(); });
}

Endpoint::~Endpoint() { close(0); }

std::shared_ptr<Request> Endpoint::push(Memory memory, Scaling scaling) {
  return submit(true, memory, scaling);
}

std::shared_ptr<Request> Endpoint::pull(Memory memory, Scaling scaling) {
  return submit(false, memory, scaling);
}

std::shared_ptr<Request> Endpoint::submit(bool is_push, Memory memory, Scaling scaling) {
  const Nanos now = monotonic_now();
  auto request = std::make_shared<Request>(memory, scaling, now);
  std::unique_lock lock(mutex_);
  std::optional<Failure> refusal = failure_;
  if (!(is_push ? config_.out : config_.in)) {
    refusal = refuse(std::string("this endpoint has no stream to ") + (is_push ? "push" : "pull"),
                     "argument", "give the stream when you make it");
  }
  if (refusal) {
    lock.unlock();
    request->fail(std::move(*refusal), now);
    return request;
  }
  commands_.push_back({is_push, request});
  const bool first = commands_.size() == 1;
  lock.unlock();
  if (first) call();
  return request;
}

Failure Endpoint::refuse(std::string message, std::string kind, std::string hint) const {
  Failure failure;
  failure.message = std::move(message);
  failure.kind = std::move(kind);
  failure.hint = std::move(hint);
  failure.peer = config_.peer;
  return failure;
}

std::optional<Failure> Endpoint::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

std::vector<Stall> Endpoint::stalled() const {
  const std::scoped_lock lock(mutex_);
  return stalls_;
}

void Endpoint::close(Nanos linger) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_) {
      failure_ = refuse("the endpoint is closed", "closed", "make a new one");
      failure_->fatal = true;
    }
    linger_ = linger_ ? std::min(*linger_, linger) : linger;
  }
  call();
  const std::scoped_lock lock(joining_);
  if (!thread_.joinable()) return;
  thread_.join();
  port_.reset();  // the next endpoint may want it
}

void Endpoint::call() {
  called_.store(1);
  poller_.wake();
}

Nanos Endpoint::processor_time() {
  const std::scoped_lock lock(joining_);
  // A thread that has ended left its time behind.
  const auto left = static_cast<Nanos>(stats_.processor_time.get());
  clockid_t clock{};
  if (left != 0 || !thread_.joinable()) return left;
  return pthread_getcpuclockid(thread_.native_handle(), &clock) == 0 ? time_of(clock) : 0;
}

void Endpoint::run() {
  std::fesetenv(FE_DFL_ENV);  // denormals and rounding as the number formats need them
  serve();
  stats_.processor_time.set(static_cast<std::uint64_t>(time_of(CLOCK_THREAD_CPUTIME_ID)));
}

void Endpoint::serve() {
  while (true) {
    Nanos now = monotonic_now();
    take_commands(now);
    if (member_.closed(now)) return;
    member_.receive(now);
    now = monotonic_now();
    const bool more = member_.transmit(now);
    supervise(now);
    if (more || port_->more() || !port_->may_sleep(member_.blocked(), called_)) continue;
    poller_.wait(member_.deadline(), member_.blocked());
  }
}

void Endpoint::take_commands(Nanos now) {
  std::vector<Command> commands;
  std::optional<Nanos> linger;
  std::optional<Failure> closed;
  called_.store(0);
  {
    const std::scoped_lock lock(mutex_);
    commands.swap(commands_);
    linger = linger_;
    if (linger) closed = failure_;
  }
  for (Command& command : commands) {
    if (command.is_push) {
      member_.push(std::move(command.request), now);
    } else {
      member_.pull(std::move(command.request), now);
    }
  }
  if (linger && !closing_) {
    closing_ = true;
    member_.close(*closed, *linger, now);
  }
  if (member_.dead()) member_.fail(*failure(), now);
}

void Endpoint::supervise(Nanos now) {
  auto health = member_.supervise(now);
  if (!health) return;
  const std::optional<Failure> expired = std::move(health->expired);
  {
    const std::scoped_lock lock(mutex_);
    stalls_ = std::move(health->stalls);
    if (expired && !failure_) failure_ = expired;
  }
  if (expired) member_.fail(*expired, now);
}

}  // namespace catchment::host
