#include "transmitter.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frame_header.hpp"
#include "scale.hpp"

namespace catchment::host {

using wire::Flag;
using wire::PacketType;

namespace {

// Half of the sequence space, less room for a window: beyond, newer() would be ambiguous.
constexpr std::uint64_t kMostQueued = 1U << 30;

}  // namespace

Transmitter::Transmitter(const StreamConfig& config, PacketType type, std::uint8_t wid,
                         Stats& stats)
    : config_(config),
      type_(type),
      wid_(wid),
      per_frame_(type == PacketType::kPARAM ? config.param_bytes
                 : config.packed            ? config.lanes * kHalvesInLane
                                            : config.lanes),
      lane_format_(config.packed, config.workers),
      stats_(stats),
      window_(config.base, config.window, config.slots),
      timer_(RetransmitLimits{}, wid) {}

std::optional<Refusal> Transmitter::submit(std::shared_ptr<Request> request) {
  std::uint64_t frames = (request->memory.elements + per_frame_ - 1) / per_frame_;
  const std::uint64_t announcements =
      request->block ? std::min<std::uint64_t>(frames, config_.slots) : 0;
  frames += announcements;
  if (frames + distance(window_.acked(), window_.end()) > kMostQueued) return Refusal::kFull;
  if (!config_.serves(used_ + frames)) return Refusal::kSpent;
  used_ += frames;
  stats_.numbers_used.set(used_);
  if (pushes_.empty()) progressed_at_ = request->submitted;
  pushes_.push_back({std::move(request),
                     window_.end(),
                     static_cast<std::uint32_t>(frames),
                     static_cast<std::uint32_t>(announcements),
                     {}});
  window_.queue(static_cast<std::uint32_t>(frames));
  hold_back();
  return std::nullopt;
}

void Transmitter::on_agreed(std::int8_t exponent) {
  const auto waits = std::ranges::find_if(pushes_, [](const Push& push) {
    return push.announcements + push.agreed.size() < push.frames && push.announcements != 0;
  });
  if (waits == pushes_.end()) return;
  waits->agreed.push_back(exponent);
  waits->request->outcome.exponent = *std::ranges::max_element(waits->agreed);
  hold_back();
}

// The first vector of data whose exponent is not known yet holds back all behind it.
void Transmitter::hold_back() {
  for (const Push& push : pushes_) {
    const auto known = push.announcements + static_cast<std::uint32_t>(push.agreed.size());
    if (push.announcements == 0 || known == push.frames) continue;
    window_.hold_back(push.start + known);
    return;
  }
  window_.hold_back(std::nullopt);
}

std::size_t Transmitter::vector_elements(const Push& push, std::uint32_t index) const {
  const std::size_t first = static_cast<std::size_t>(index) * per_frame_;
  return std::min<std::size_t>(per_frame_, push.request->memory.elements - first);
}

std::int8_t Transmitter::need(const Push& push, std::uint32_t index) const {
  const Memory& memory = push.request->memory;
  const std::size_t first = static_cast<std::size_t>(index) * per_frame_;
  return scale_of(memory.type, memory.address + first * item_bytes(memory.type),
                  vector_elements(push, index))
      .exponent;
}

const Transmitter::Push& Transmitter::owner(Seq seq) {
  // Frames leave in order but for retransmissions, so the cursor is nearly always right.
  if (cursor_ >= pushes_.size() || newer(pushes_[cursor_].start, seq)) cursor_ = 0;
  while (distance(pushes_[cursor_].start, seq) >= pushes_[cursor_].frames) ++cursor_;
  return pushes_[cursor_];
}

std::size_t Transmitter::pump(Port& port, const std::optional<Piggyback>& piggyback, Nanos now,
                              std::size_t budget) {
  std::size_t staged = 0;
  while (staged < budget) {
    std::uint8_t* const room = port.stage();
    if (room == nullptr) break;
    const auto transmission = window_.take();
    if (!transmission) break;
    stage(room, *transmission, piggyback, port);
    if (transmission->again) {
      stats_.retransmissions.add();
    } else {
      timer_.on_sent(transmission->seq, now);
    }
    ++staged;
  }
  note_stall(now);
  stats_.in_flight.set(distance(window_.acked(), window_.next()));
  return staged;
}

void Transmitter::stage(std::uint8_t* room, const Transmission& transmission,
                        const std::optional<Piggyback>& piggyback, Port& port) {
  const Push& push = owner(transmission.seq);
  const Memory& memory = push.request->memory;
  const std::uint32_t place = distance(push.start, transmission.seq);
  const bool announces = place < push.announcements;
  const bool block = push.announcements != 0;
  const std::uint32_t index = announces ? place : place - push.announcements;
  const std::size_t first = static_cast<std::size_t>(index) * per_frame_;
  const std::size_t count = announces ? 0 : vector_elements(push, index);
  const std::uint8_t* const source = memory.address + first * item_bytes(memory.type);
  const int exponent = announces ? 0 : block ? push.agreed[index] : push.request->outcome.exponent;
  std::uint8_t* const payload = room + wire::kHeaderBytes;

  wire::Header header = frame_header(type_, config_.gen, wid_, transmission.seq);
  header.dtype = static_cast<std::uint8_t>(memory.type);
  header.exp = static_cast<std::int8_t>(exponent);
  if (transmission.again) set(header, Flag::kRETX);
  if (place + 1 == push.frames || place + 1 == push.announcements) set(header, Flag::kLAST);
  if (block && place < push.frames - push.announcements) {
    set(header, Flag::kEXPV);
    header.next_exp = need(push, place);
  }
  if (piggyback) set_window(header, piggyback->ack, piggyback->credit);

  std::size_t payload_bytes = count;
  if (type_ == PacketType::kPARAM) {
    std::memcpy(payload, source, count);
    header.lanes = static_cast<std::uint16_t>(count);
  } else {
    const Cut cut = lane_format_.quantize(memory.type, source, count, exponent, payload);
    payload_bytes = static_cast<std::size_t>(config_.lanes) * wire::kLaneBytes;
    const std::size_t used = count * lane_format_.item_bytes();
    std::memset(payload + used, 0, payload_bytes - used);
    header.lanes = static_cast<std::uint16_t>(config_.lanes);
    if (config_.packed) set(header, Flag::kPACKED);
    if (cut.saturated != 0) set(header, Flag::kSAT);
    if (!transmission.again) {
      Outcome& outcome = push.request->outcome;
      outcome.saturated += cut.saturated;
      outcome.nonfinite += cut.nonfinite;
      if (cut.saturated != 0) outcome.flags |= static_cast<std::uint8_t>(Flag::kSAT);
      stats_.saturated.add(cut.saturated);
      stats_.nonfinite.add(cut.nonfinite);
    }
  }
  wire::encode(header, room);
  port.commit(wire::kHeaderBytes + payload_bytes);
  stats_.frames_sent.add();
  stats_.bytes_sent.add(wire::kHeaderBytes + payload_bytes);
}

std::optional<Reject> Transmitter::on_ack(const wire::Header& header, Nanos now) {
  const AckOutcome outcome = window_.on_ack(header.ack, header.credit);
  if (outcome == AckOutcome::kImpossible) return Reject::kAck;
  if (outcome == AckOutcome::kAdvanced) {
    progressed_at_ = now;
    timer_.on_progress(window_.acked(), window_.outstanding(), now);
    if (const auto sample = timer_.take_sample()) stats_.round_trips.add(*sample);
    stats_.round_trip.set(static_cast<std::uint64_t>(timer_.round_trip()));
    stats_.retransmit_timeout.set(static_cast<std::uint64_t>(timer_.timeout()));
    // The counter is set before a request completes: its caller must not find it in flight then.
    stats_.in_flight.set(distance(window_.acked(), window_.next()));
    complete(now);
  }
  const bool asks = header.type == static_cast<std::uint8_t>(PacketType::kMH) &&
                    wire::has(header.flags, Flag::kRETX);
  if (asks) window_.on_missing(header.seq);
  return std::nullopt;
}

void Transmitter::complete(Nanos now) {
  while (!pushes_.empty()) {
    const Push& push = pushes_.front();
    if (distance(push.start, window_.acked()) < push.frames || newer(push.start, window_.acked())) {
      return;
    }
    stats_.push_latency.add(now - push.request->submitted);
    push.request->finish(now);
    pushes_.pop_front();
    if (cursor_ != 0) --cursor_;
  }
}

void Transmitter::on_timer(Nanos now) {
  if (!timer_.expired(now)) return;
  window_.on_timeout();
  timer_.on_expired(now);
  stats_.timeouts.add();
  stats_.retransmit_timeout.set(static_cast<std::uint64_t>(timer_.timeout()));
}

void Transmitter::note_stall(Nanos now) {
  if (window_.starved() == starved_since_.has_value()) return;
  if (starved_since_) {
    stats_.credit_stalls.add(now - *starved_since_);
    starved_since_.reset();
  } else {
    starved_since_ = now;
  }
}

void Transmitter::fail_all(const Failure& failure, Nanos now) {
  for (Push& push : pushes_) push.request->fail(failure, now);
  pushes_.clear();
  window_.hold_back(std::nullopt);
}

}  // namespace catchment::host
