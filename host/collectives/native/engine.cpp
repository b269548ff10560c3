#include "engine.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "elementwise.hpp"
#include "frame_header.hpp"
#include "gathered_sums.hpp"

namespace catchment::host {

using wire::DataType;
using wire::Flag;
using wire::PacketType;

namespace {

// Frames staged or batches received before the other direction has its turn.
constexpr std::size_t kBudget = 64;
constexpr int kMostBatches = 4;
// Missing sums that are asked for at a time after a silence.
constexpr int kProbes = 4;
// How long the others may take to say that they have what this rank has.
constexpr Nanos kLateWords = 10'000'000;
// The one rule for each of a vector's senders: signatures, agendas and words are integers.
constexpr std::uint8_t kWords = static_cast<std::uint8_t>(DataType::kINT32);

}  // namespace

std::size_t longest_frame(const EngineConfig& config) {
  return wire::kHeaderBytes + wire::kLaneBytes * config.stream.lanes;
}

Engine::Engine(EngineConfig config, std::unique_ptr<Port> port)
    : config_(std::move(config)),
      layout_{.lanes = config_.stream.lanes,
              .ranks = config_.stream.workers,
              .rank = config_.rank,
              .headroom = headroom(config_.stream.workers)},
      payload_bytes_(wire::kLaneBytes * config_.stream.lanes),
      frame_bytes_(longest_frame(config_)),
      port_(std::move(port)),
      mask_(std::bit_ceil(config_.stream.slots) - 1),
      window_(config_.stream.base, config_.stream.window, config_.stream.slots),
      consumer_(config_.stream.base, config_.stream.window),
      heartbeat_(config_.stream.base, config_.stream.window, HeartbeatTimes{}),
      timer_(RetransmitLimits{}, config_.rank),
      losses_(mask_ + 1U),
      schedule_(config_.stream.slots),
      roll_call_(config_.stream.workers, config_.rank),
      places_(mask_ + 1U),
      headers_(mask_ + 1U),
      payloads_((mask_ + 1U) * payload_bytes_),
      held_headers_(mask_ + 1U),
      held_payloads_((mask_ + 1U) * payload_bytes_) {
  if (frame_bytes_ > port_->path_bytes()) {
    throw std::system_error(EMSGSIZE, std::generic_category(), "a frame does not fit the path");
  }
}

void Engine::start(const std::shared_ptr<Operation>& operation, Nanos now) {
  operation->submitted = now;
  operation->resent_before = stats_.retransmissions.get();
  if (failure_) {
    operation->outcome.failure = failure_;
    operation->done.store(true, std::memory_order_release);
    return;
  }
  const Signature& signature = operation->call.signature;
  operation->lanes = lanes_of(signature, layout_);
  operation->vectors =
      static_cast<std::uint32_t>((operation->lanes + layout_.lanes - 1) / layout_.lanes);
  operation->rides = operation->lanes != 0 && operation->lanes <= riding(layout_).lanes;
  if (signature.scaling == ScalingMode::kWhole) {
    const Scale own = scale_of(signature.type, operation->call.source, signature.elements);
    operation->whole = std::max(own.exponent, signature.exponent);
  }
  if (negotiates(signature.scaling)) {
    const auto first = std::min(operation->vectors, config_.stream.slots);
    operation->scales.resize(first);
    const bool given = signature.scaling == ScalingMode::kDelayed;
    const bool tried = operation->vectors == first && (given || first <= kMostTried);
    operation->trial = tried ? first : 0;
    operation->on_grid = tried && first <= kMostTried && signature.scaling != ScalingMode::kWhole;
    if (!operation->rides) {
      operation->needs.resize(lanes_of_needs(first, layout_));
      operation->tables = tables_of(first, layout_);
    }
  }
  if (sums_words(signature)) {
    count_cut(*operation, 0,
              count_nonfinite(signature.type, operation->call.source, signature.elements));
  }
  if (signature.reduction == Reduction::kMax || sums_words(signature)) {
    operation->gathered.resize(signature.elements * item_bytes(signature.type) * layout_.ranks);
  }
  if (pending_.empty()) progressed_at_ = supervised_at_ = now;
  pending_.push_back(operation);
  schedule_.submit(operation);
}

bool Engine::cancel(Operation& operation) {
  if (operation.done.load() || operation.begun) return false;
  operation.cancelled = true;
  return true;
}

bool Engine::turn(Nanos now) {
  if (port_ == nullptr) return false;
  const bool received = receive(now);
  const bool sent = transmit(now);
  supervise(now);
  return received || sent;
}

// ---- in ----------------------------------------------------------------------------------------

bool Engine::receive(Nanos now) {
  bool any = false;
  for (int batch = 0; batch < kMostBatches; ++batch) {
    for (const auto frame : port_->receive()) {
      stats_.frames_received.add();
      stats_.bytes_received.add(frame.size());
      any = true;
      if (failure_) continue;
      if (const auto reject = on_frame(frame, now)) {
        stats_.rejects[static_cast<std::size_t>(*reject)].add();
      }
    }
    if (!port_->more()) break;
  }
  return any;
}

std::optional<Reject> Engine::on_frame(std::span<const std::uint8_t> frame, Nanos now) {
  wire::Header header;
  if (const auto reject = check_envelope(frame, header)) return reject;
  if (header.gen != config_.stream.gen) return Reject::kGeneration;
  if (header.type == static_cast<std::uint8_t>(PacketType::kMH)) {
    return on_merged(header, frame.size(), now);
  }
  const Acceptance accepts{.gen = config_.stream.gen, .sums = true, .lanes = config_.stream.lanes};
  if (const auto reject = check_content(header, frame.size(), accepts)) return reject;
  ++heard_;
  roll_call_.on_heard();
  if (wire::has(header.flags, Flag::kACKV)) {
    if (const auto reject = on_ack(header, now)) return reject;
  }
  return on_sum(header, frame.data() + wire::kHeaderBytes, now);
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
  if (call) roll_call_.on_call(static_cast<std::uint8_t>(header.exp), header.seq, now);
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
    stats_.round_trip.set(static_cast<std::uint64_t>(timer_.round_trip()));
    stats_.retransmit_timeout.set(static_cast<std::uint64_t>(timer_.timeout()));
  }
  return std::nullopt;
}

std::optional<Reject> Engine::on_sum(const wire::Header& header, const std::uint8_t* payload,
                                     Nanos now) {
  // A sum has this rank's vector in it, so what was not sent cannot have come back.
  if (!newer(window_.next(), header.seq)) return Reject::kWindow;
  switch (consumer_.classify(header.seq)) {
    case Arrival::kDuplicate:
      heartbeat_.on_duplicate();
      return Reject::kDuplicate;
    case Arrival::kOutside:
      return Reject::kWindow;
    case Arrival::kNext:
      losses_.on_received(header.seq);
      consume(header, payload, now);
      consumer_.pass();
      while (consumer_.ready() && !failure_) {
        const Seq seq = consumer_.consumed();
        consume(held_headers_[place_of(seq)], held_of(seq), now);
        consumer_.consume();
      }
      break;
    case Arrival::kAhead: {
      losses_.on_received(header.seq);
      if (!use_early(header, payload, now)) {
        held_headers_[place_of(header.seq)] = header;
        std::memcpy(held_of(header.seq), payload, payload_bytes_);
      }
      const auto [first, last] = consumer_.hold(header.seq);
      for (Seq seq = first; seq != last; ++seq) {
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
  const int exponent = scale_of_vector(operation, at.index).exponent;
  const auto type = words ? kWords : static_cast<std::uint8_t>(signature.type);
  if (header.dtype != type || (!words && is_float(signature.type) && header.exp != exponent)) {
    CollectiveFailure failure;
    failure.kind = "mismatch";
    failure.message = "another rank's vector has element type " + std::to_string(header.dtype) +
                      " and exponent " + std::to_string(header.exp) + ", this one's " +
                      std::to_string(type) + " and " + std::to_string(exponent);
    failure.hint = "do all ranks give the same priorities, and run the same version?";
    failure.seq = header.seq;
    failure.fatal = true;
    fail(std::move(failure), now);
    return;
  }
  put(operation, at.index, layout_, header, payload);
  ++operation.outcome.vectors;
  const std::uint64_t ahead = static_cast<std::uint64_t>(at.index) + config_.stream.slots;
  if (wire::has(header.flags, Flag::kEXPV) && negotiates(signature.scaling) &&
      ahead < operation.vectors) {
    operation.scales[at.index % operation.scales.size()] = {header.next_exp,
                                                            wire::has(header.flags, Flag::kSAT)};
  }
  on_placed(operation, header, now);
}

// Places vector `index`'s sums in the result.  When no scale could hold a rank's elements, no rank
// knows which of them are not finite, and all elements of the vector are spoilt.
void Engine::put(Operation& operation, std::uint32_t index, const Layout& layout,
                 const wire::Header& header, const std::uint8_t* payload) {
  const bool beyond = operation.call.signature.scaling == ScalingMode::kFixed &&
                      wire::has(header.flags, Flag::kSAT) && header.next_exp == kMostExponent;
  if (beyond) {
    spoil(operation, index, layout);
  } else {
    place(operation, index, scale_of_vector(operation, index), layout, payload);
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
  const auto held = std::ranges::find(pending_, &operation, &std::shared_ptr<Operation>::get);
  const std::shared_ptr<Operation> last = std::move(*held);
  pending_.erase(held);
  operation.done.store(true, std::memory_order_release);
}

Scale Engine::scale_of_vector(const Operation& operation, std::uint32_t index) const {
  if (operation.scales.empty()) return {operation.call.signature.exponent, false};
  return operation.scales[index % operation.scales.size()];
}

// ---- out ---------------------------------------------------------------------------------------

bool Engine::transmit(Nanos now) {
  if (failure_) return false;
  if (now >= resend_at()) {
    window_.on_timeout();
    timer_.on_expired(now);
    stats_.timeouts.add();
    stats_.retransmit_timeout.set(static_cast<std::uint64_t>(timer_.timeout()));
  }
  probe(now);
  std::size_t staged = 0;
  while (staged < kBudget) {
    std::uint8_t* const room = port_->stage();
    if (room == nullptr) break;
    auto transmission = window_.take();
    if (!transmission) {
      // What a place holds is only known once everything T places before has come.
      if (!window_.open()) break;
      auto place = schedule_.next();
      if (!place) break;
      window_.queue(1);
      transmission = window_.take();
      prepare(transmission->seq, *place);
      places_[place_of(transmission->seq)] = std::move(*place);
      timer_.on_sent(transmission->seq, now);
    } else {
      stats_.retransmissions.add();
    }
    losses_.on_sent(transmission->seq, transmission->again);
    send(transmission->seq, transmission->again, room);
    ++staged;
  }
  if (staged != 0) heartbeat_.on_carried(consumer_.ack(), consumer_.credit());
  const bool called = roll_call_.due(now) && send_heartbeat(true, now);
  const bool beaten = called || (heartbeat_.due(now) && send_heartbeat(false, now));
  blocked_ = !port_->flush();
  stats_.in_flight.set(distance(window_.acked(), window_.next()));
  return staged != 0 || beaten;
}

// While no sum is missing here, what is not acknowledged has been added: the others are only late
// to say so, and repetitions are for a switch that has lost its state.
Nanos Engine::resend_at() const {
  const Nanos at = timer_.deadline();
  const bool missing = consumer_.ack() != window_.next();
  return missing ? at : std::max(at, progressed_at_ + kLateWords);
}

void Engine::probe(Nanos now) {
  if (!silence_.expired(consumer_.ack() != window_.next(), now)) return;
  int left = kProbes;
  for (Seq seq = consumer_.ack(); seq != window_.next() && left != 0; ++seq) {
    if (!consumer_.missing(seq)) continue;
    window_.resend(seq);
    --left;
  }
  silence_.on_asked(now);
}

void Engine::prepare(Seq seq, const Place& place) {
  std::uint8_t* const payload = payload_of(seq);
  wire::Header& header = headers_[place_of(seq)];
  header = frame_header(PacketType::kPA, config_.stream.gen, config_.rank, seq);
  header.dtype = kWords;
  header.lanes = static_cast<std::uint16_t>(layout_.lanes);
  switch (place.content) {
    case Content::kBegin: {
      begins_.push_back(seq);
      std::memset(payload, 0, payload_bytes_);
      Operation& operation = *place.operation;
      Signature signature = operation.call.signature;
      signature.cancelled = operation.cancelled;
      if (negotiates(signature.scaling)) prepare_needs(operation, signature, header, payload);
      write_signature(signature, layout_.rank, layout_.ranks, layout_.lanes, payload);
      if (operation.vectors == 0 || operation.rides) set(header, Flag::kLAST);
      if (operation.rides) prepare_riding(operation, header, payload);
      break;
    }
    case Content::kTable:
      begins_.push_back(seq);
      std::memset(payload, 0, payload_bytes_);
      write_needs(*place.operation, place.index + 1, payload);
      break;
    case Content::kData:
      prepare_data(place, header, payload);
      break;
    case Content::kAgenda: {
      std::memset(payload, 0, payload_bytes_);
      const Agenda agenda = schedule_.agenda();
      write_lane(payload, 2UL * layout_.rank, agenda.called);
      write_lane(payload, 2UL * layout_.rank + 1, agenda.hash);
      break;
    }
    case Content::kFiller:
      std::memset(payload, 0, payload_bytes_);
      break;
  }
}

void Engine::prepare_data(const Place& place, wire::Header& header, std::uint8_t* payload) {
  Operation& operation = *place.operation;
  const Signature& signature = operation.call.signature;
  const bool words = passes_words(signature);
  const Scale scale = scale_of_vector(operation, place.index);
  if (!words) {
    header.dtype = static_cast<std::uint8_t>(signature.type);
    header.exp = static_cast<std::int8_t>(is_float(signature.type) ? scale.exponent : 0);
  }
  if (place.index + 1 == operation.vectors) set(header, Flag::kLAST);
  if (signature.scaling == ScalingMode::kFixed) {
    tell_need(operation, place.index, header);
  } else if (negotiates(signature.scaling) &&
             operation.vectors - place.index > config_.stream.slots) {
    tell_need(operation, place.index + config_.stream.slots, header);
  }
  note_cut(operation, fill(operation, place.index, scale, layout_, payload), place.trial, header);
}

// What is cut on a guess is nothing that counts.
void Engine::note_cut(Operation& operation, const Cut& cut, bool trial, wire::Header& header) {
  if (trial) return;
  if (cut.saturated != 0) set(header, Flag::kSAT);
  count_cut(operation, cut.saturated, cut.nonfinite);
}

void Engine::count_cut(Operation& operation, std::uint64_t saturated, std::uint64_t nonfinite) {
  operation.outcome.saturated += saturated;
  operation.outcome.nonfinite += nonfinite;
  stats_.saturated.add(saturated);
  stats_.nonfinite.add(nonfinite);
}

void Engine::send(Seq seq, bool again, std::uint8_t* room) {
  wire::Header header = headers_[place_of(seq)];
  set_window(header, consumer_.ack(), consumer_.credit());
  if (again) set(header, Flag::kRETX);
  wire::encode(header, room);
  port_->commit(wire::kHeaderBytes, {payload_of(seq), payload_bytes_});
  stats_.frames_sent.add();
  stats_.bytes_sent.add(frame_bytes_);
}

bool Engine::send_heartbeat(bool call, Nanos now) {
  std::uint8_t* const room = port_->stage();
  if (room == nullptr) return false;
  wire::Header header =
      frame_header(PacketType::kHB, config_.stream.gen, config_.rank, window_.next());
  set_window(header, consumer_.ack(), consumer_.credit());
  if (call) {
    set(header, Flag::kRETX);
    header.exp = static_cast<std::int8_t>(config_.rank);
    roll_call_.on_said(now);
  }
  wire::encode(header, room);
  port_->commit(wire::kHeaderBytes);
  heartbeat_.on_sent(header.ack, header.credit, now);
  stats_.heartbeats_sent.add();
  stats_.frames_sent.add();
  stats_.bytes_sent.add(wire::kHeaderBytes);
  return true;
}

}  // namespace catchment::host
