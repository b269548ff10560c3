#include "member.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "spent_key.hpp"

namespace catchment::host {

using wire::PacketType;

namespace {

// Frames staged before the port is looked at again.
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

}  // namespace

std::size_t longest_frame(const EndpointConfig& config) {
  const std::size_t in =
      config.in ? frame_bytes(*config.in, config.role == Role::kWorker) : wire::kHeaderBytes;
  return std::max(in, longest_out(config));
}

std::size_t largest_window(const EndpointConfig& config) {
  return std::max(config.out ? config.out->window : 0U, config.in ? config.in->window : 0U);
}

std::vector<std::pair<std::uint16_t, TagKey>> keys_of(const EndpointConfig& config) {
  std::vector<std::pair<std::uint16_t, TagKey>> keys;
  for (const auto& stream : {config.out, config.in}) {
    if (stream && stream->key) keys.emplace_back(stream->gen, *stream->key);
  }
  return keys;
}

Member::Member(const EndpointConfig& config, Port& port, Stats& stats)
    : role_(config.role),
      peer_(config.peer),
      port_(port),
      stats_(stats),
      watchdog_(config.timeout, config.peer) {
  if (longest_out(config) > port.path_bytes()) {
    throw std::system_error(EMSGSIZE, std::generic_category(), "path MTU");
  }
  const bool root = role_ == Role::kRoot;
  const bool peer = role_ == Role::kPeer;
  if (config.out) {
    out_.emplace(*config.out, root ? PacketType::kPARAM : PacketType::kPA, config.wid, stats_);
    out_accepts_ = {.gen = config.out->gen,
                    .sums = peer,
                    .packed = true,
                    .merged = true,
                    .lanes = config.out->lanes};
  }
  if (config.in) {
    const bool sums = root || peer;
    in_.emplace(*config.in, sums ? PacketType::kFA : PacketType::kPARAM, config.wid, stats_);
    in_accepts_ = {.gen = config.in->gen,
                   .sums = sums,
                   .packed = true,
                   .parameters = !sums,
                   .merged = peer,
                   .lanes = config.in->lanes,
                   .param_bytes = config.in->param_bytes};
  }
}

void Member::push(std::shared_ptr<Request> request, Nanos now) {
  const auto refusal = out_->submit(request);
  if (!refusal) return;
  if (*refusal == Refusal::kSpent) {
    request->fail(spent_key(out_->name(), peer_), now);
    return;
  }
  Failure failure;
  failure.message = "too many frames are queued";
  failure.kind = "argument";
  failure.hint = "wait for earlier pushes to complete";
  failure.peer = peer_;
  request->fail(std::move(failure), now);
}

void Member::pull(std::shared_ptr<Request> request, Nanos now) {
  in_->submit(std::move(request), now);
}

void Member::receive(Nanos now) {
  for (const auto frame : port_.receive()) {
    if (dead_) break;
    if (const auto reject = on_frame(frame, now)) {
      stats_.rejects[static_cast<std::size_t>(*reject)].add();
    }
  }
  stats_.rejects[static_cast<std::size_t>(Reject::kSource)].set(port_.foreign());
  stats_.rejects[static_cast<std::size_t>(Reject::kTag)].set(port_.forged());
  stats_.socket_errors.set(port_.errors());
}

std::optional<Reject> Member::on_frame(std::span<const std::uint8_t> frame, Nanos now) {
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

bool Member::transmit(Nanos now) {
  if (dead_) return false;
  const bool peer = role_ == Role::kPeer;
  std::size_t staged = 0;
  if (out_) {
    std::optional<Piggyback> piggyback;
    if (peer && in_) {
      piggyback = in_->piggyback();
      while (const auto missing = in_->next_missing()) out_->on_missing(*missing);
      for (const std::int8_t exponent : in_->take_agreed()) out_->on_agreed(exponent);
    }
    out_->on_timer(now);
    staged = out_->pump(port_, piggyback, now, kBudget);
    if (staged != 0 && piggyback) in_->on_carried();
  }
  if (in_) in_->beat(port_, now);
  blocked_ = !port_.flush();
  if (blocked_ && !blocked_since_) blocked_since_ = now;
  if (!blocked_ && blocked_since_) {
    stats_.socket_stalls.add(now - *blocked_since_);
    blocked_since_.reset();
  }
  return staged == kBudget && !blocked_;
}

std::optional<Health> Member::supervise(Nanos now) {
  if (now < watchdog_.deadline() || dead_ || closing_at_) return std::nullopt;
  const Transmitter* const out = out_ ? &*out_ : nullptr;
  const Receiver* const in = in_ ? &*in_ : nullptr;
  contact_.last_error = port_.last_error();
  return Health{watchdog_.stalls(out, in, contact_, now),
                watchdog_.expired(out, in, contact_, now)};
}

void Member::fail(const Failure& failure, Nanos now) {
  dead_ = true;
  if (out_) out_->fail_all(failure, now);
  if (in_) in_->fail_all(failure, now);
}

void Member::close(const Failure& failure, Nanos linger, Nanos now) {
  closing_at_ = now + linger;
  if (out_) out_->fail_all(failure, now);
  if (in_) in_->fail_all(failure, now);
  out_.reset();
}

bool Member::closed(Nanos now) const {
  if (!closing_at_) return false;
  if (dead_ || !in_ || now >= *closing_at_) return true;
  return in_->heard_at() == 0 || now - in_->heard_at() >= kQuiet;
}

Nanos Member::deadline() const {
  if (dead_) return kNever;
  Nanos soonest =
      closing_at_ ? std::min(*closing_at_, in_->heard_at() + kQuiet) : watchdog_.deadline();
  if (out_) soonest = std::min(soonest, out_->deadline());
  if (in_ && !blocked_) soonest = std::min(soonest, in_->deadline());
  return soonest;
}

}  // namespace catchment::host
