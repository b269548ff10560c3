// What a rank does with frames that arrive: it checks them, holds sums that came early, and makes
// results of those whose turn it is.
#include <algorithm>
#include <cstring>
#include <utility>

#include "catchment/common/fetch.hpp"
#include "engine.hpp"

namespace catchment::host {

using wire::Flag;
using wire::PacketType;

namespace {

// Batches received before the other direction has its turn.
constexpr int kMostBatches = 4;

}  // namespace

bool Engine::receive(Nanos now) {
  bool any = false;
  for (int batch = 0; batch < kMostBatches; ++batch) {
    const auto frames = port_->receive();
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const auto frame = frames[i];
      if (i + 1 < frames.size()) fetch(frames[i + 1].data(), frames[i + 1].size());
      take(frame, Order::kInTurn, now);
      any = true;
    }
    if (!port_->more()) break;
  }
  return any;
}

void Engine::receive_own(Nanos now) {
  while (const auto frame = port_->receive_own()) take(*frame, Order::kEarly, now);
}

void Engine::take(std::span<const std::uint8_t> frame, Order order, Nanos now) {
  stats_.frames_received.add();
  stats_.bytes_received.add(frame.size());
  if (failure_) return;
  if (const auto reject = on_frame(frame, order, now)) {
    stats_.rejects[static_cast<std::size_t>(*reject)].add();
  }
}

std::optional<Reject> Engine::on_frame(std::span<const std::uint8_t> frame, Order order,
                                       Nanos now) {
  wire::Header header;
  if (const auto reject = check_envelope(frame, header)) return reject;
  if (header.gen != config_.stream.gen) return Reject::kGeneration;
  if (header.type == static_cast<std::uint8_t>(PacketType::kMH)) {
    return on_merged(header, frame.size(), now);
  }
  const Acceptance accepts{.gen = config_.stream.gen,
                           .sums = true,
                           .packed = config_.stream.packed,
                           .lanes = config_.stream.lanes};
  if (const auto reject = check_content(header, frame.size(), accepts)) return reject;
  ++heard_;
  roll_call_.on_heard();
  if (wire::has(header.flags, Flag::kACKV)) {
    if (const auto reject = on_ack(header, now)) return reject;
  }
  return on_sum(header, frame.data() + wire::kHeaderBytes, order, now);
}

std::optional<Reject> Engine::on_merged(const wire::Header& header, std::size_t bytes, Nanos now) {
  if (header.lanes != 0) return Reject::kLanes;
  if (bytes != wire::kHeaderBytes) return Reject::kLength;
  const bool call = wire::has(header.flags, Flag::kRETX);
  const bool window = wire::has(header.flags, Flag::kACKV);
  if (!call && !window) return Reject::kFlags;
  ++heard_;
  roll_call_.on_heard();
  stats_.heartbeats_received.add();
  if (call) {
    roll_call_.on_call(header.exp, header.seq, now);
    if (config_.hailed && pending_.empty() && newer(header.seq, window_.next())) config_.hailed();
  }
  return window ? on_ack(header, now) : std::nullopt;
}

std::optional<Reject> Engine::on_ack(const wire::Header& header, Nanos now) {
  // What all ranks have received this one has, too.
  const AckOutcome outcome = newer(header.ack, consumer_.ack())
                                 ? AckOutcome::kImpossible
                                 : window_.on_ack(header.ack, header.credit);
  if (outcome == AckOutcome::kImpossible) {
    ++impossible_;
    return Reject::kAck;
  }
  impossible_ = 0;
  if (outcome == AckOutcome::kAdvanced) {
    timer_.on_progress(window_.acked(), window_.outstanding(), now);
    if (const auto sample = timer_.take_sample()) {
      stats_.round_trips.add(*sample);
      silence_.on_round_trip(*sample);
      heartbeat_.on_round_trip(silence_.round_trip());
      roll_call_.on_round_trip(silence_.round_trip());
    } else if (const auto bound = timer_.take_bound(); bound && timer_.round_trip() == 0) {
      // On a slow link the first windows are all repeated, and no answer is a sample.
      heartbeat_.on_round_trip(*bound);
      roll_call_.on_round_trip(*bound);
    }
    stats_.round_trip.set(static_cast<std::uint64_t>(timer_.round_trip()));
    stats_.retransmit_timeout.set(static_cast<std::uint64_t>(timer_.timeout()));
  }
  return std::nullopt;
}

std::optional<Reject> Engine::on_sum(const wire::Header& header, const std::uint8_t* payload,
                                     Order order, Nanos now) {
  // A sum has this rank's vector in it, so what was not sent cannot have come back.
  if (!newer(window_.next(), header.seq)) return Reject::kWindow;
  const bool in_turn = order == Order::kInTurn;
  switch (consumer_.classify(header.seq)) {
    case Arrival::kDuplicate:
      heartbeat_.on_duplicate();
      silence_.on_duplicate();
      return Reject::kDuplicate;
    case Arrival::kOutside:
      return Reject::kWindow;
    case Arrival::kNext:
      if (in_turn && losses_.on_received(header.seq)) window_.on_late();
      consume(header, payload, now);
      consumer_.pass();
      while (consumer_.ready() && !failure_) {
        const Seq seq = consumer_.consumed();
        consume(held_headers_[place_of(seq)], held_of(seq), now);
        consumer_.consume();
      }
      break;
    case Arrival::kAhead: {
      if (in_turn) losses_.on_received(header.seq);
      if (!use_early(header, payload, now)) {
        held_headers_[place_of(header.seq)] = header;
        std::memcpy(held_of(header.seq), payload, payload_bytes_);
      }
      const auto [first, last] = consumer_.hold(header.seq);
      // Where nothing is lost a sum that others have overtaken is only late.
      const bool late = !in_turn || port_->lossless();
      for (Seq seq = first; seq != last && !late; ++seq) {
        if (!consumer_.missing(seq)) continue;
        window_.on_missing(seq);
        stats_.frames_asked_for.add();
        silence_.on_loss(now);
      }
      break;
    }
  }
  while (const auto lost = losses_.take_lost(consumer_)) window_.resend(*lost);
  silence_.on_sum(now);
  last_sum_at_ = now;
  heartbeat_.on_window(consumer_.ack(), consumer_.credit(), now);
  return std::nullopt;
}

void Engine::consume(const wire::Header& header, const std::uint8_t* payload, Nanos now) {
  progressed_at_ = now;
  const Seq seq = consumer_.consumed();
  if (!begins_.empty() && begins_.front() == seq) begins_.pop_front();
  const Place place = std::exchange(places_[place_of(seq)], Place{});
  switch (place.content) {
    case Content::kBegin:
      on_signatures(*place.operation, header, payload, now);
      break;
    case Content::kTable:
      on_table(place, payload, now);
      break;
    case Content::kData:
      on_data(place, header, payload, now);
      break;
    case Content::kAgenda:
      on_agendas(place, payload, now);
      break;
    case Content::kFiller:
      break;
  }
  ++consumed_;
}

// Data have a place of their own in the result, and what is agreed about them cannot change any
// more once no signatures before them are outstanding: a mismatch there would send them again.
bool Engine::use_early(const wire::Header& header, const std::uint8_t* payload, Nanos now) {
  const Place& place = places_[place_of(header.seq)];
  const bool settled = begins_.empty() || newer(begins_.front(), header.seq);
  if (place.content != Content::kData || !settled) return false;
  progressed_at_ = now;
  on_data(std::exchange(places_[place_of(header.seq)], Place{}), header, payload, now);
  return true;
}

void Engine::on_data(const Place& at, const wire::Header& header, const std::uint8_t* payload,
                     Nanos now) {
  Operation& operation = *at.operation;
  if (at.trial && operation.missed) return;
  const Signature& signature = operation.call.signature;
  const bool words = passes_words(signature);
  const int exponent = at.scale.exponent;
  const auto type = words ? kWords : static_cast<std::uint8_t>(signature.type);
  if (header.dtype != type || (!words && is_float(signature.type) && header.exp != exponent)) {
    disagree(header,
             "element type " + std::to_string(header.dtype) + " and exponent " +
                 std::to_string(header.exp) + ", this one's " + std::to_string(type) + " and " +
                 std::to_string(exponent),
             now);
    return;
  }
  if (!has_own_lanes(operation, header, now)) return;
  put(operation, at.index, at.scale, layout_, header, payload);
  ++operation.outcome.vectors;
  const std::uint64_t ahead = static_cast<std::uint64_t>(at.index) + config_.stream.slots;
  if (wire::has(header.flags, Flag::kEXPV) && negotiates(signature.scaling) &&
      ahead < operation.vectors) {
    operation.scales[at.index % operation.scales.size()] = {header.next_exp,
                                                            wire::has(header.flags, Flag::kSAT)};
  }
  on_placed(operation, header, now);
}

// Whether a sum of an operation's data has packed lanes if and only if this rank's vector has.
bool Engine::has_own_lanes(const Operation& operation, const wire::Header& header, Nanos now) {
  const bool mixed = wire::has(header.flags, Flag::kMIXED);
  const bool packed = packs(operation.call.signature);
  if (!mixed && wire::has(header.flags, Flag::kPACKED) == packed) return true;
  disagree(header,
           packed ? "32-bit lanes, this one's packed ones" : "packed lanes, this one's 32-bit ones",
           now);
  return false;
}

// Ranks that have agreed about an operation send vectors that do not belong together.
void Engine::disagree(const wire::Header& header, const std::string& how, Nanos now) {
  CollectiveFailure failure;
  failure.kind = "mismatch";
  failure.message = "another rank's vector has " + how;
  failure.hint = "do all ranks give the same priorities, and run the same version?";
  failure.seq = header.seq;
  failure.fatal = true;
  fail(std::move(failure), now);
}

// Places vector `index`'s sums in the result.  When no scale could hold a rank's elements, no rank
// knows which of them are not finite, and all elements of the vector are spoilt.
void Engine::put(Operation& operation, std::uint32_t index, Scale scale, const Layout& layout,
                 const wire::Header& header, const std::uint8_t* payload) {
  const Signature& signature = operation.call.signature;
  const bool beyond = signature.scaling == ScalingMode::kFixed &&
                      wire::has(header.flags, Flag::kSAT) && header.next_exp == kMostExponent;
  // Packed lanes have no room for what marked vectors say of each element.
  if (beyond || (scale.marked && packs(signature))) {
    spoil(operation, index, layout);
  } else {
    place(operation, index, scale, layout, payload);
  }
}

// A data vector's sums are in the array.
void Engine::on_placed(Operation& operation, const wire::Header& header, Nanos now) {
  CollectiveOutcome& outcome = operation.outcome;
  if (operation.call.signature.scaling == ScalingMode::kFixed &&
      wire::has(header.flags, Flag::kSAT)) {
    outcome.any_saturated = true;
  }
  if (wire::has(header.flags, Flag::kEXPV)) {
    outcome.exponent = std::max<int>(outcome.exponent, header.next_exp);
  }
  if (++operation.received == operation.vectors) {
    finish(operation, layout_);
    complete(operation, now);
  }
}

void Engine::complete(Operation& operation, Nanos now) {
  CollectiveOutcome& outcome = operation.outcome;
  outcome.latency = now - operation.submitted;
  outcome.retransmissions = stats_.retransmissions.get() - operation.resent_before;
  stats_.pull_latency.add(outcome.latency);
  // The other ranks need to hear soon that a long operation's vectors are here: their windows may
  // be full.  A short operation's acknowledgement rides on the next operation's vectors, or leaves
  // a little later by itself.
  if (operation.vectors > kMostTried) heartbeat_.on_message_end();
  if (operation.missed) forget(operation);
  const auto held = std::ranges::find(pending_, &operation, &std::shared_ptr<Operation>::get);
  const std::shared_ptr<Operation> last = std::move(*held);
  pending_.erase(held);
  operation.done.store(true, std::memory_order_release);
}

// The sums of what left on a wrong guess may come after all others: nobody waits for them, and the
// operation is gone when they do.
void Engine::forget(const Operation& operation) {
  for (Seq seq = consumer_.consumed(); seq != window_.next(); ++seq) {
    Place& place = places_[place_of(seq)];
    if (place.operation == &operation) place = Place{};
  }
}

}  // namespace catchment::host
