#include "receiver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frame_header.hpp"

namespace catchment::host {

using wire::DataType;
using wire::Flag;
using wire::PacketType;

Receiver::Receiver(const StreamConfig& config, PacketType type, std::uint8_t wid, Stats& stats)
    : config_(config),
      type_(type),
      wid_(wid),
      lane_format_(config.packed, config.workers),
      stats_(stats),
      window_(config.base, config.window),
      heartbeat_(config.base, config.window, HeartbeatTimes{}),
      payload_bytes_(type == PacketType::kPARAM ? config.param_bytes
                                                : config.lanes * wire::kLaneBytes),
      ring_(payload_bytes_ * window_.places()),
      frames_(window_.places()) {}

void Receiver::submit(std::shared_ptr<Request> request, Nanos now) {
  if (pulls_.empty()) progressed_at_ = now;
  pulls_.push_back({std::move(request)});
  drain(now);
  after_change(now);
}

std::optional<Reject> Receiver::on_frame(const wire::Header& header,
                                         std::span<const std::uint8_t> payload, Nanos now) {
  heard_at_ = now;
  switch (window_.classify(header.seq)) {
    case Arrival::kDuplicate:
      heartbeat_.on_duplicate();
      return Reject::kDuplicate;
    case Arrival::kOutside:
      return Reject::kWindow;
    case Arrival::kNext:
      progressed_at_ = now;
      if (!window_.ready() && takes()) {
        deliver({header.flags, header.dtype, header.exp, header.next_exp,
                 static_cast<std::uint16_t>(payload.size())},
                payload.data(), now);
        window_.pass();
        drain(now);
        break;
      }
      [[fallthrough]];
    case Arrival::kAhead: {
      const std::uint32_t place = window_.place(header.seq);
      frames_[place] = {header.flags, header.dtype, header.exp, header.next_exp,
                        static_cast<std::uint16_t>(payload.size())};
      std::memcpy(&ring_[place * payload_bytes_], payload.data(), payload.size());
      const auto skipped = window_.hold(header.seq);
      if (skipped.first != skipped.second) note_missing(skipped);
      drain(now);
      break;
    }
  }
  if (wire::has(header.flags, Flag::kLAST)) heartbeat_.on_message_end();
  after_change(now);
  return std::nullopt;
}

void Receiver::drain(Nanos now) {
  while (window_.ready() && takes()) {
    const std::uint32_t place = window_.place(window_.consumed());
    deliver(frames_[place], &ring_[place * payload_bytes_], now);
    window_.consume();
    progressed_at_ = now;
  }
}

void Receiver::after_change(Nanos now) {
  heartbeat_.on_window(window_.ack(), window_.credit(), now);
  stats_.held.set(distance(window_.consumed(), window_.ack()));
  const bool full = window_.ack() == window_.credit();
  if (full && !full_since_) full_since_ = now;
  if (!full && full_since_) {
    stats_.pull_stalls.add(now - *full_since_);
    full_since_.reset();
  }
}

void Receiver::deliver(const Frame& frame, const std::uint8_t* payload, Nanos now) {
  const bool last = wire::has(frame.flags, Flag::kLAST);
  const bool tells = wire::has(frame.flags, Flag::kEXPV);
  // No more than T are under way, unless nobody here asks for them.
  if (tells && agreed_.size() < config_.slots) agreed_.push_back(frame.next_exponent);
  if (skipping_) {
    skipping_ = !last;
    return;
  }
  Pull& pull = pulls_.front();
  Request& request = *pull.request;
  const std::size_t left = request.memory.elements - pull.done;
  const std::size_t carried =
      type_ == PacketType::kPARAM ? frame.bytes : frame.bytes / lane_format_.item_bytes();
  if (auto other = other_lanes(frame)) {
    fail_first(std::move(*other), last, now);
    return;
  }
  if (request.block && !pull.announced) {
    if (!tells) {
      Failure failure;
      failure.stream = config_.name;
      failure.kind = "exponent";
      failure.message = "a worker pushed without saying which exponents it needs";
      failure.hint = "every worker must push a block-scaled message as such";
      fail_first(std::move(failure), last, now);
      return;
    }
    pull.announced = last;
    return;
  }
  auto failure = mismatch(pull, frame, carried);
  if (failure) {
    fail_first(std::move(*failure), last, now);
    return;
  }
  place(pull, frame, payload);
  pull.done += std::min(left, carried);
  if (!last) return;
  stats_.pull_latency.add(now - request.submitted);
  request.finish(now);
  pulls_.pop_front();
}

void Receiver::fail_first(Failure failure, bool last, Nanos now) {
  skipping_ = !last;
  failure.seq = window_.consumed();
  pulls_.front().request->fail(std::move(failure), now);
  pulls_.pop_front();
}

std::optional<Failure> Receiver::other_lanes(const Frame& frame) const {
  const bool mixed = wire::has(frame.flags, Flag::kMIXED);
  if (type_ != PacketType::kFA ||
      (!mixed && wire::has(frame.flags, Flag::kPACKED) == config_.packed)) {
    return std::nullopt;
  }
  Failure failure;
  failure.stream = config_.name;
  failure.kind = "mismatch";
  failure.message = mixed            ? "some workers' vectors have packed lanes and others' do not"
                    : config_.packed ? "a sum of 32-bit lanes came; this stream's are packed"
                                     : "a sum of packed lanes came; this stream's have 32 bits";
  failure.hint = "give the Stream of every worker and root the same `packed`";
  return failure;
}

std::optional<Failure> Receiver::mismatch(const Pull& pull, const Frame& frame,
                                          std::size_t carried) const {
  const Request& request = *pull.request;
  const std::size_t total = request.memory.elements;
  const std::size_t left = total - pull.done;
  const bool last = wire::has(frame.flags, Flag::kLAST);
  // A vector's padding looks like its data, so sums are compared by whole frames.
  const bool sums = type_ == PacketType::kFA;
  const bool longer =
      sums ? !last && left <= carried : carried > left || (!last && left == carried);
  const bool shorter = last && left > carried;
  Failure failure;
  failure.stream = config_.name;
  if (longer || shorter) {
    const char* const unit = sums ? " elements" : " bytes";
    failure.kind = "length";
    failure.message = "pull of " + std::to_string(total) + unit + ", but what was pushed is ";
    failure.message += shorter ? "only " + std::to_string(pull.done + carried) + unit + " long"
                               : std::string("longer");
    failure.hint = "pull the same length as was pushed; the message is dropped";
    return failure;
  }
  if (!sums) return std::nullopt;
  const auto pushed = static_cast<DataType>(frame.dtype);
  if (is_float(request.memory.type) && !is_float(pushed)) {
    failure.kind = "dtype";
    failure.message = "pull into " + std::string(wire::name(request.memory.type)) + ", but " +
                      std::string(wire::name(pushed)) + " was pushed";
    failure.hint = "pull integers into an int32 buffer";
    return failure;
  }
  if (pull.started && !request.block && is_float(pushed) &&
      frame.exponent != request.outcome.exponent) {
    failure.kind = "exponent";
    failure.message = "exponent " + std::to_string(frame.exponent) + " after " +
                      std::to_string(request.outcome.exponent) + " in one message";
    failure.hint = "every worker must push a message with the same exponent";
    return failure;
  }
  return std::nullopt;
}

void Receiver::place(Pull& pull, const Frame& frame, const std::uint8_t* payload) {
  Request& request = *pull.request;
  const Memory& memory = request.memory;
  Outcome& outcome = request.outcome;
  std::uint8_t* const target = memory.address + pull.done * item_bytes(memory.type);
  outcome.flags |= frame.flags;
  const bool first = !std::exchange(pull.started, true);
  if (type_ == PacketType::kPARAM) {
    std::memcpy(target, payload, frame.bytes);
    return;
  }
  const std::size_t count =
      std::min(memory.elements - pull.done, frame.bytes / lane_format_.item_bytes());
  const auto pushed = static_cast<DataType>(frame.dtype);
  outcome.exponent = first ? frame.exponent : std::max<int>(outcome.exponent, frame.exponent);
  const std::uint32_t most =
      lane_format_.dequantize(payload, count, frame.exponent, memory.type, target);
  outcome.max_raw = std::max(outcome.max_raw, most);
  const double largest = is_float(pushed) ? lane_format_.value(most, frame.exponent) : most;
  outcome.max_abs = std::max(outcome.max_abs, largest);
}

void Receiver::note_missing(std::pair<Seq, Seq> skipped) {
  // What lies between two ranges has arrived, and next_missing() passes over it.
  if (missing_.first == missing_.second) missing_.first = skipped.first;
  missing_.second = skipped.second;
}

std::optional<Seq> Receiver::next_missing() {
  while (missing_.first != missing_.second) {
    const Seq seq = missing_.first++;
    if (window_.missing(seq)) return seq;
  }
  return std::nullopt;
}

void Receiver::beat(Port& port, Nanos now) {
  while (const auto missing = next_missing()) {
    if (!send_heartbeat(port, missing, now)) return;
    stats_.frames_asked_for.add();
  }
  if (heartbeat_.due(now)) send_heartbeat(port, std::nullopt, now);
}

bool Receiver::send_heartbeat(Port& port, std::optional<Seq> missing, Nanos now) {
  std::uint8_t* const room = port.stage();
  if (room == nullptr) return false;
  const Seq ack = window_.ack();
  wire::Header header = frame_header(PacketType::kHB, config_.gen, wid_, missing.value_or(ack));
  set_window(header, ack, window_.credit());
  if (missing) set(header, Flag::kRETX);
  wire::encode(header, room);
  port.commit(wire::kHeaderBytes);
  heartbeat_.on_sent(header.ack, header.credit, now);
  stats_.heartbeats_sent.add();
  stats_.frames_sent.add();
  stats_.bytes_sent.add(wire::kHeaderBytes);
  return true;
}

void Receiver::on_carried() { heartbeat_.on_carried(window_.ack(), window_.credit()); }

void Receiver::fail_all(const Failure& failure, Nanos now) {
  for (Pull& pull : pulls_) pull.request->fail(failure, now);
  pulls_.clear();
}

}  // namespace catchment::host
