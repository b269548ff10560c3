#include "endpoint.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cfenv>
#include <span>
#include <system_error>
#include <utility>

namespace catchment::host {

using wire::PacketType;

namespace {

// Frames staged before the socket is looked at again.
constexpr std::size_t kBudget = 64;
// A sender that lacks our last heartbeat asks again within a few of its timeouts.
constexpr Nanos kQuiet = 50'000'000;

std::size_t frame_bytes(const StreamConfig& stream, bool parameters) {
  return wire::kHeaderBytes + (parameters ? stream.param_bytes : stream.lanes * wire::kLaneBytes);
}

// The longest frame that this endpoint sends.
std::size_t longest_out(const EndpointConfig& config) {
  return config.out ? frame_bytes(*config.out, config.role == Role::kRoot) : wire::kHeaderBytes;
}

Nanos time_of(clockid_t clock) {
  timespec used{};
  return clock_gettime(clock, &used) == 0 ? used.tv_sec * 1'000'000'000 + used.tv_nsec : 0;
}

}  // namespace

std::size_t longest_frame(const EndpointConfig& config) {
  const std::size_t in =
      config.in ? frame_bytes(*config.in, config.role == Role::kWorker) : wire::kHeaderBytes;
  return std::max(in, longest_out(config));
}

std::size_t largest_window(const EndpointConfig& config) {
  return std::max(config.out ? config.out->window : 0U, config.in ? config.in->window : 0U);
}

Endpoint::Endpoint(EndpointConfig config, std::unique_ptr<Port> port)
    : config_(std::move(config)),
      port_(std::move(port)),
      poller_(port_->descriptor()),
      watchdog_(config_.timeout, config_.peer) {
  if (longest_out(config_) > port_->path_bytes()) {
    throw std::system_error(EMSGSIZE, std::generic_category(), "path MTU");
  }
  const bool root = config_.role == Role::kRoot;
  const bool peer = config_.role == Role::kPeer;
  if (config_.out) {
    out_.emplace(*config_.out, root ? PacketType::kPARAM : PacketType::kPA, config_.wid, stats_);
    out_accepts_ = {
        .gen = config_.out->gen, .sums = peer, .merged = true, .lanes = config_.out->lanes};
  }
  if (config_.in) {
    const bool sums = root || peer;
    in_.emplace(*config_.in, sums ? PacketType::kFA : PacketType::kPARAM, config_.wid, stats_);
    in_accepts_ = {.gen = config_.in->gen,
                   .sums = sums,
                   .parameters = !sums,
                   .merged = peer,
                   .lanes = config_.in->lanes,
                   .param_bytes = config_.in->param_bytes};
  }
  thread_ = std::thread([this] { run(); });
}

Endpoint::~Endpoint() { close(0); }

std::shared_ptr<Request> Endpoint::push(Memory memory, int exponent) {
  return submit(true, memory, exponent);
}

std::shared_ptr<Request> Endpoint::pull(Memory memory) { return submit(false, memory, 0); }

std::shared_ptr<Request> Endpoint::submit(bool is_push, Memory memory, int exponent) {
  const Nanos now = monotonic_now();
  auto request = std::make_shared<Request>(memory, exponent, now);
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
    if (closing_at_ && !lingering(now)) return;
    receive(now);
    now = monotonic_now();
    const bool more = transmit(now);
    supervise(now);
    if (more || port_->more() || !port_->may_sleep(blocked_, called_)) continue;
    poller_.wait(deadline(), blocked_);
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
    if (!command.is_push) {
      in_->submit(std::move(command.request), now);
    } else if (!out_->submit(command.request)) {
      command.request->fail(
          refuse("too many frames are queued", "argument", "wait for earlier pushes to complete"),
          now);
    }
  }
  if (linger && !closing_at_) {
    closing_at_ = now + *linger;
    if (out_) out_->fail_all(*closed, now);
    if (in_) in_->fail_all(*closed, now);
    out_.reset();
  }
  if (dead_) fail_everything(*failure(), now);
}

bool Endpoint::lingering(Nanos now) {
  if (dead_ || !in_ || now >= *closing_at_) return false;
  return in_->heard_at() != 0 && now - in_->heard_at() < kQuiet;
}

void Endpoint::receive(Nanos now) {
  for (const auto frame : port_->receive()) {
    if (dead_) break;
    if (const auto reject = on_frame(frame, now)) {
      stats_.rejects[static_cast<std::size_t>(*reject)].add();
    }
  }
  stats_.rejects[static_cast<std::size_t>(Reject::kSource)].set(port_->foreign());
  stats_.socket_errors.set(port_->errors());
}

std::optional<Reject> Endpoint::on_frame(std::span<const std::uint8_t> frame, Nanos now) {
  stats_.bytes_received.add(frame.size());
  stats_.frames_received.add();
  wire::Header header;
  if (const auto reject = check_envelope(frame, header)) return reject;
  const bool inbound = in_accepts_ && header.gen == in_accepts_->gen;
  const bool outbound = out_accepts_ && header.gen == out_accepts_->gen;
  if (!inbound && !outbound) return Reject::kGeneration;
  const Acceptance& acceptance = inbound ? *in_accepts_ : *out_accepts_;
  if (const auto reject = check_content(header, frame.size(), acceptance)) return reject;
  contact_.last_frame = now;
  ++contact_.frames;
  const bool merged = header.type == static_cast<std::uint8_t>(PacketType::kMH);
  if (merged) stats_.heartbeats_received.add();
  if (outbound && out_ && wire::has(header.flags, wire::Flag::kACKV)) {
    if (const auto reject = out_->on_ack(header, now)) return reject;
  }
  if (!inbound || merged) return std::nullopt;
  return in_->on_frame(header, frame.subspan(wire::kHeaderBytes), now);
}

bool Endpoint::transmit(Nanos now) {
  if (dead_) return false;
  const bool peer = config_.role == Role::kPeer;
  std::size_t staged = 0;
  if (out_) {
    std::optional<Piggyback> piggyback;
    if (peer && in_) {
      piggyback = in_->piggyback();
      while (const auto missing = in_->next_missing()) out_->on_missing(*missing);
    }
    out_->on_timer(now);
    staged = out_->pump(*port_, piggyback, now, kBudget);
    if (staged != 0 && piggyback) in_->on_carried();
  }
  if (in_) in_->beat(*port_, now);
  blocked_ = !port_->flush();
  if (blocked_ && !blocked_since_) blocked_since_ = now;
  if (!blocked_ && blocked_since_) {
    stats_.socket_stalls.add(now - *blocked_since_);
    blocked_since_.reset();
  }
  return staged == kBudget && !blocked_;
}

void Endpoint::supervise(Nanos now) {
  if (now < watchdog_.deadline() || dead_ || closing_at_) return;
  const Transmitter* const out = out_ ? &*out_ : nullptr;
  const Receiver* const in = in_ ? &*in_ : nullptr;
  contact_.last_error = port_->last_error();
  auto stalls = watchdog_.stalls(out, in, contact_, now);
  auto expired = watchdog_.expired(out, in, contact_, now);
  {
    const std::scoped_lock lock(mutex_);
    stalls_ = std::move(stalls);
    if (expired && !failure_) failure_ = expired;
  }
  if (expired) fail_everything(*expired, now);
}

void Endpoint::fail_everything(const Failure& failure, Nanos now) {
  dead_ = true;
  if (out_) out_->fail_all(failure, now);
  if (in_) in_->fail_all(failure, now);
}

Nanos Endpoint::deadline() const {
  if (dead_) return kNever;
  Nanos soonest =
      closing_at_ ? std::min(*closing_at_, in_->heard_at() + kQuiet) : watchdog_.deadline();
  if (out_) soonest = std::min(soonest, out_->deadline());
  if (in_ && !blocked_) soonest = std::min(soonest, in_->deadline());
  return soonest;
}

}  // namespace catchment::host
