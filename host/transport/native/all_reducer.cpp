#include "all_reducer.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "frame_header.hpp"
#include "numbers.hpp"
#include "spent_key.hpp"

namespace catchment::host {
namespace {

using wire::Flag;
using wire::PacketType;

constexpr Seq kNoCredit = 0;  // slots bound a worker, not credit
// A flood must not keep the timers from their turn.
constexpr int kMostBatches = 16;
// A round trip through a switch on the same machine is far below a millisecond; through BMv2 on a
// busy one it is tens of them.
constexpr RetransmitLimits kLimits{.first = 5'000'000, .least = 1'000'000, .most = 50'000'000};

std::string seconds(Nanos duration) {
  const Nanos tenths = duration / (kSecond / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

std::size_t longest_frame(const AllReducerConfig& config) {
  return wire::kHeaderBytes + wire::kLaneBytes * config.stream.lanes;
}

AllReducer::AllReducer(AllReducerConfig config, std::unique_ptr<Port> port)
    : config_(std::move(config)),
      patience_(reducer_patience(config_.spin)),
      headroom_(headroom(config_.stream.workers)),
      frame_bytes_(longest_frame(config_)),
      port_(std::move(port)),
      ring_(config_.stream.base, config_.stream.window, config_.stream.slots, kLimits, config_.wid),
      frames_(ring_.places() * frame_bytes_),
      rounds_(ring_.places()) {
  if (frame_bytes_ > port_->path_bytes()) {
    throw std::system_error(EMSGSIZE, std::generic_category(), "a frame does not fit the path");
  }
}

std::uint32_t AllReducer::vectors(const Reduction& reduction) const {
  const std::size_t lanes = config_.stream.lanes;
  return static_cast<std::uint32_t>((reduction.source.elements + lanes - 1) / lanes);
}

void AllReducer::start(const std::shared_ptr<Reduction>& reduction) {
  const std::scoped_lock lock(mutex_);
  const Nanos now = monotonic_now();
  reduction->outcome = Outcome{};
  reduction->outcome.exponent = reduction->exponent;
  reduction->begun = reduction->taken = 0;
  reduction->started = now;
  reduction->done = false;
  if (failure_) {
    reduction->outcome.failure = failure_;
    reduction->done = true;
    return;
  }
  if (!config_.stream.serves(used_ + vectors(*reduction))) {
    reduction->outcome.failure = spent_key(config_.stream.name, config_.peer);
    reduction->done = true;
    return;
  }
  used_ += vectors(*reduction);
  stats_.numbers_used.set(used_);
  if (ring_.idle() && queue_.empty()) progressed_at_ = left_at_ = now;
  if (!ring_.open() && receive(now)) left_at_ = now;
  queue_.push_back(reduction);
  transmit(now);
}

bool AllReducer::wait(const Reduction& reduction, Nanos limit) {
  const std::scoped_lock lock(mutex_);
  if (reduction.done) return true;
  const Nanos now = monotonic_now();
  const Nanos until = limit > kNever - now ? kNever : now + limit;
  if (interrupted_) fail_closed("the all-reducer was interrupted", now);
  progressed_at_ += now - left_at_;  // a pause of the caller is not the network's
  quiet_since_ = now;
  Nanos last = now;
  do {
    last = turn(until);  // also for who only looks: nobody else runs the protocol
  } while (!reduction.done && last < until);
  // Not the last turn's beginning: that turn may have been long on a busy machine.
  left_at_ = monotonic_now();
  if (reduction.done) stands_since_ = 0;
  return reduction.done;
}

Nanos AllReducer::turn(Nanos until) {
  const Nanos now = monotonic_now();
  if (receive(now)) {
    quiet_since_ = now;
    // What the caller waits for may have come: the acknowledgement then goes with its next vector.
    if (!queue_.empty() || acks_.size() > 1) transmit(now);
    return now;
  }
  const bool sleeps = patience_.next(quiet_since_, now) == Waiting::kSleep;
  if (!sleeps && !ring_.due(now) && !blocked_) {
    patience_.yield(now);
    return now;
  }
  transmit(now);
  supervise(now);
  if (sleeps) sleep(std::min(until, ring_.deadline()), now);
  return now;
}

void AllReducer::sleep(Nanos until, Nanos now) {
  const Nanos longest = now + kSecond / 20;
  const Nanos nanos = std::max<Nanos>(std::min(until, longest) - now, 0);
  const timespec timeout{.tv_sec = nanos / kSecond, .tv_nsec = nanos % kSecond};
  pollfd ready{.fd = port_->descriptor(), .events = POLLIN, .revents = 0};
  if (blocked_) ready.events |= POLLOUT;
  if (!port_->may_sleep(blocked_, never_)) return;
  ppoll(&ready, 1, &timeout, nullptr);
}

bool AllReducer::receive(Nanos now) {
  bool any = false;
  for (int batch = 0; batch < kMostBatches; ++batch) {
    const auto frames = port_->receive();
    for (const auto frame : frames) {
      stats_.frames_received.add();
      stats_.bytes_received.add(frame.size());
      const auto reject = on_frame(frame, now);
      if (reject) {
        stats_.rejects[static_cast<std::size_t>(*reject)].add();
      } else {
        any = true;
        ++heard_;
      }
    }
    if (!port_->more()) break;
  }
  stats_.rejects[static_cast<std::size_t>(Reject::kTag)].set(port_->forged());
  return any;
}

std::optional<Reject> AllReducer::on_frame(std::span<const std::uint8_t> frame, Nanos now) {
  wire::Header header;
  if (const auto reject = check_envelope(frame, header)) return reject;
  if (header.gen != config_.stream.gen) return Reject::kGeneration;
  const Acceptance accepts{.gen = config_.stream.gen,
                           .sums = true,
                           .lanes = config_.stream.lanes,
                           .confirmations = true};
  if (const auto reject = check_content(header, frame.size(), accepts)) return reject;
  const bool sum = header.type == static_cast<std::uint8_t>(PacketType::kFA);
  switch (sum ? ring_.on_sum(header.seq, now) : ring_.on_confirmation(header.seq, now)) {
    case RoundEvent::kRepeated:
      return Reject::kDuplicate;
    case RoundEvent::kImpossible:
      return Reject::kAck;
    case RoundEvent::kTaken:
      break;
  }
  progressed_at_ = now;
  if (const auto sample = ring_.take_sample()) stats_.round_trips.add(*sample);
  stats_.round_trip.set(static_cast<std::uint64_t>(ring_.timer().round_trip()));
  stats_.in_flight.set(distance(ring_.oldest(), ring_.next()));
  if (sum) on_sum(header, frame.data() + wire::kHeaderBytes, now);
  return std::nullopt;
}

void AllReducer::on_sum(const wire::Header& header, const std::uint8_t* lanes, Nanos now) {
  acks_.push_back(header.seq);
  Round& round = rounds_[ring_.place(header.seq)];
  const std::shared_ptr<Reduction> reduction = std::exchange(round.reduction, nullptr);
  if (reduction == nullptr || reduction->done) return;  // it has failed meanwhile
  const Memory& target = reduction->target;
  Outcome& outcome = reduction->outcome;
  if (header.dtype != static_cast<std::uint8_t>(target.type) ||
      (is_float(target.type) && header.exp != reduction->exponent)) {
    Failure failure;
    const bool type = header.dtype != static_cast<std::uint8_t>(target.type);
    failure.kind = type ? "dtype" : "exponent";
    failure.message =
        type ? "another worker's vector has element type " + std::to_string(header.dtype)
             : "another worker's vector has exponent " + std::to_string(header.exp) +
                   ", this one's " + std::to_string(reduction->exponent);
    failure.stream = config_.stream.name;
    failure.seq = header.seq;
    failure.peer = config_.peer;
    failure.hint = "every worker must give the same element type and exponent";
    outcome.failure = failure;
  } else {
    const std::size_t first = static_cast<std::size_t>(round.index) * config_.stream.lanes;
    const std::size_t count = std::min<std::size_t>(config_.stream.lanes, target.elements - first);
    std::uint8_t* const to = target.address + first * item_bytes(target.type);
    const std::uint32_t most =
        dequantize(lanes, count, reduction->exponent, headroom_, target.type, to);
    outcome.max_raw = std::max(outcome.max_raw, most);
    outcome.flags |= header.flags;
  }
  if (++reduction->taken == vectors(*reduction)) {
    outcome.latency = now - reduction->started;
    stats_.pull_latency.add(outcome.latency);
    reduction->done = true;
  }
}

void AllReducer::transmit(Nanos now) {
  std::size_t sent = 0;
  while (sent < acks_.size() && send_ack(acks_[sent])) ++sent;
  acks_.erase(acks_.begin(), acks_.begin() + static_cast<std::ptrdiff_t>(sent));
  bool room = acks_.empty();
  while (room) {
    const auto retry = ring_.take_retry(now);
    if (!retry) break;
    stats_.timeouts.add();
    // A retry that does not fit is lost like any other frame.
    if (retry->vector) room = send_vector(retry->seq, true);
    if (retry->ack) room = room && send_ack(retry->seq);
  }
  while (room && !queue_.empty() && ring_.open()) {
    std::uint8_t* const probe = port_->stage();
    if (probe == nullptr) break;
    const std::shared_ptr<Reduction>& reduction = queue_.front();
    const Seq seq = ring_.begin(now);
    rounds_[ring_.place(seq)] = {reduction, reduction->begun};
    prepare(seq, *reduction, reduction->begun);
    send_vector(seq, false);
    if (++reduction->begun == vectors(*reduction)) queue_.pop_front();
  }
  blocked_ = !port_->flush();
  stats_.in_flight.set(distance(ring_.oldest(), ring_.next()));
}

void AllReducer::prepare(Seq seq, Reduction& reduction, std::uint32_t index) {
  const Memory& source = reduction.source;
  const std::size_t per_frame = config_.stream.lanes;
  const std::size_t first = static_cast<std::size_t>(index) * per_frame;
  const std::size_t count = std::min(per_frame, source.elements - first);
  std::uint8_t* const frame = frame_of(seq);
  std::uint8_t* const payload = frame + wire::kHeaderBytes;
  const Cut cut = quantize(source.type, source.address + first * item_bytes(source.type), count,
                           reduction.exponent, headroom_, payload);
  std::memset(payload + count * wire::kLaneBytes, 0, (per_frame - count) * wire::kLaneBytes);
  wire::Header header = frame_header(PacketType::kPA, config_.stream.gen, config_.wid, seq);
  header.dtype = static_cast<std::uint8_t>(source.type);
  header.exp = static_cast<std::int8_t>(reduction.exponent);
  header.lanes = static_cast<std::uint16_t>(per_frame);
  if (cut.saturated != 0) set(header, Flag::kSAT);
  if (index + 1 == vectors(reduction)) set(header, Flag::kLAST);
  set_window(header, ring_.lacks(), kNoCredit);
  wire::encode(header, frame);
  reduction.outcome.saturated += cut.saturated;
  reduction.outcome.nonfinite += cut.nonfinite;
  stats_.saturated.add(cut.saturated);
  stats_.nonfinite.add(cut.nonfinite);
}

bool AllReducer::send_vector(Seq seq, bool again) {
  std::uint8_t* const room = port_->stage();
  if (room == nullptr) return false;
  std::memcpy(room, frame_of(seq), frame_bytes_);
  if (again) {
    wire::Header header = wire::decode(room);
    set(header, Flag::kRETX);
    header.ack = ring_.lacks();
    wire::encode(header, room);
    stats_.retransmissions.add();
  }
  port_->commit(frame_bytes_);
  stats_.frames_sent.add();
  stats_.bytes_sent.add(frame_bytes_);
  return true;
}

bool AllReducer::send_ack(Seq seq) {
  std::uint8_t* const room = port_->stage();
  if (room == nullptr) return false;
  wire::Header header = frame_header(PacketType::kACK, config_.stream.gen, config_.wid, seq);
  set_window(header, ring_.lacks(), kNoCredit);
  wire::encode(header, room);
  port_->commit(wire::kHeaderBytes);
  stats_.frames_sent.add();
  stats_.bytes_sent.add(wire::kHeaderBytes);
  return true;
}

void AllReducer::supervise(Nanos now) {
  stats_.socket_errors.set(port_->errors());
  stands_at_ = ring_.oldest();
  stands_since_ = progressed_at_;
  if (interrupted_) fail_closed("the all-reducer was interrupted", now);
  if (now - progressed_at_ < config_.timeout || failure_) return;
  Failure failure;
  failure.fatal = true;
  failure.peer = config_.peer;
  failure.stream = config_.stream.name;
  failure.seq = ring_.oldest();
  failure.message = "no progress for " + seconds(config_.timeout);
  if (heard_ == 0) {
    failure.kind = "unreachable";
    failure.message += ", and nothing was ever heard from the switch";
    failure.hint = port_->last_error() == 0
                       ? "is the switch running, is its address right, does it know this job's gen "
                         "on this port, and are all the other workers there?"
                       : std::string("the network says: ") + std::strerror(port_->last_error()) +
                             "; is the switch running, and its address right?";
  } else {
    failure.kind = "stalled";
    failure.hint = ring_.awaits_sum(ring_.oldest())
                       ? "the sum is not complete: another worker is missing or behind"
                       : "the round is not confirmed: another worker has not acknowledged it";
    failure.hint += "; `catchment doctor` says who, or that an earlier run has used the job";
  }
  fail_all(failure, now);
}

void AllReducer::fail_all(const Failure& failure, Nanos now) {
  failure_ = failure;
  const auto fail = [&](const std::shared_ptr<Reduction>& reduction) {
    if (reduction == nullptr || reduction->done) return;
    reduction->outcome.failure = failure;
    reduction->outcome.latency = now - reduction->started;
    reduction->done = true;
  };
  for (const auto& reduction : queue_) fail(reduction);
  for (Round& round : rounds_) fail(round.reduction);
  queue_.clear();
}

void AllReducer::fail_closed(const char* message, Nanos now) {
  if (failure_) return;
  Failure failure;
  failure.kind = "closed";
  failure.message = message;
  failure.peer = config_.peer;
  failure.fatal = true;
  fail_all(failure, now);
}

std::optional<Standstill> AllReducer::standstill(Nanos least) const {
  const Nanos since = stands_since_;
  const Nanos duration = monotonic_now() - since;
  if (since == 0 || duration < least) return std::nullopt;
  return Standstill{.duration = duration, .seq = stands_at_};
}

std::optional<Failure> AllReducer::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void AllReducer::close(Nanos linger) {
  const std::scoped_lock lock(mutex_);
  if (port_ == nullptr) return;
  const Nanos started = monotonic_now();
  fail_closed("the all-reducer is closed", started);
  stands_since_ = 0;
  quiet_since_ = started;
  transmit(started);
  // What still waits for its sum can only fail; what is acknowledged must be confirmed.
  while (!ring_.idle() && !ring_.awaits_sum(ring_.oldest()) && monotonic_now() - started < linger) {
    turn(started + linger);
    transmit(monotonic_now());
  }
  port_.reset();  // a successor may bind its address now
}

}  // namespace catchment::host
