// What a rank sends: vectors of its operations, what the others miss, and heartbeats.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine.hpp"
#include "frame_header.hpp"

namespace catchment::host {

using wire::Flag;
using wire::PacketType;

namespace {

// Frames staged before the other direction has its turn.
constexpr std::size_t kBudget = 64;
// Missing sums that are asked for at a time after a silence.
constexpr int kProbes = 4;
// Nobody answers a farewell, so a lost one is made up for by another one.
constexpr int kFarewells = 3;
// How long the others may take to say that they have what this rank has.
constexpr Nanos kLateWords = 10'000'000;
// Over a port that loses nothing, what is not acknowledged is sent again after so long.
constexpr Nanos kRepeatAll = kSecond;

}  // namespace

bool Engine::transmit(Nanos now) {
  if (failure_) return false;
  repeat(now);
  std::size_t staged = 0;
  while (staged < kBudget && !failure_) {
    if (port_->stage() == nullptr) break;
    auto transmission = window_.take();
    if (!transmission) {
      // What a place holds is only known once everything T places before has come.
      if (is_spent()) {
        const bool ends = !keys_follow();  // else the next key may come
        if (ends && !pending_.empty() && consumer_.ack() == window_.next()) fail(spent(), now);
        break;
      }
      if (leaving_ || !window_.open()) break;
      Place& place = places_[place_of(window_.next())];
      if (!schedule_.next(place)) break;
      window_.queue(1);
      transmission = window_.take();
      prepare(transmission->seq, place);
      timer_.on_sent(transmission->seq, now);
    } else {
      stats_.retransmissions.add();
    }
    losses_.on_sent(transmission->seq, transmission->again);
    const bool answered = send(transmission->seq, transmission->again);
    ++staged;
    if (answered) receive_own(now);
  }
  if (staged != 0) heartbeat_.on_carried(consumer_.ack(), consumer_.credit());
  const bool called = roll_call_.due(now) && send_heartbeat(Saying::kPlace, now);
  const bool beaten = called || (heartbeat_.due(now) && send_heartbeat(Saying::kWindow, now));
  stats_.in_flight.set(distance(window_.acked(), window_.next()));
  return staged != 0 || beaten;
}

void Engine::repeat(Nanos now) {
  if (port_->lossless()) {
    const std::uint64_t before = std::exchange(connections_, port_->connections());
    if (before == connections_ && now < repeat_all_at()) return;
    for (Seq seq = window_.acked(); seq != window_.next(); ++seq) window_.resend(seq);
    repeated_at_ = now;
    return;
  }
  if (now >= resend_at()) {
    window_.on_timeout();
    timer_.on_expired(now);
    stats_.timeouts.add();
    stats_.retransmit_timeout.set(static_cast<std::uint64_t>(timer_.timeout()));
  }
  probe(now);
}

// What a late rank has not added is under way for as long as the rank is late.  What two
// connections have lost at once may need somebody to ask again.
Nanos Engine::repeat_all_at() const {
  return window_.outstanding() ? std::max(progressed_at_, repeated_at_) + kRepeatAll : kNever;
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

void Engine::prepare(Seq seq, Place& place) {
  std::uint8_t* const payload = payload_of(seq).data();
  wire::Header& header = headers_[place_of(seq)];
  header = frame_header(PacketType::kPA, config_.stream.gen, config_.place, seq);
  header.dtype = kWords;
  header.lanes = static_cast<std::uint16_t>(layout_.lanes);
  switch (place.content) {
    case Content::kBegin: {
      begins_.push_back(seq);
      Operation& operation = *place.operation;
      // What rides behind the signatures fills the rest.
      const std::size_t behind = operation.rides ? riding(layout_).lanes * wire::kLaneBytes : 0;
      std::memset(payload, 0, payload_bytes_ - behind);
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

void Engine::prepare_data(Place& place, wire::Header& header, std::uint8_t* payload) {
  Operation& operation = *place.operation;
  const Signature& signature = operation.call.signature;
  const bool words = passes_words(signature);
  place.scale = scale_of_vector(operation, place.index);
  if (!words) {
    header.dtype = static_cast<std::uint8_t>(signature.type);
    header.exp = static_cast<std::int8_t>(is_float(signature.type) ? place.scale.exponent : 0);
  }
  if (place.index + 1 == operation.vectors) set(header, Flag::kLAST);
  if (packs(signature)) set(header, Flag::kPACKED);
  if (signature.scaling == ScalingMode::kFixed) {
    tell_need(operation, place.index, header);
  } else if (negotiates(signature.scaling) &&
             operation.vectors - place.index > config_.stream.slots) {
    tell_need(operation, place.index + config_.stream.slots, header);
  }
  const Cut cut = fill(operation, place.index, place.scale, layout_, payload);
  note_cut(operation, cut, place.trial, header);
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

bool Engine::send(Seq seq, bool again) {
  wire::Header header = headers_[place_of(seq)];
  header.gen = config_.stream.gen;  // which may have been another when the vector was made
  set_window(header, consumer_.ack(), consumer_.credit());
  if (again) set(header, Flag::kRETX);
  const std::span<std::uint8_t> frame = payloads_.frame(place_of(seq));
  wire::encode(header, frame.data());
  stats_.frames_sent.add();
  stats_.bytes_sent.add(frame_bytes_);
  return port_->commit_in_place(frame);
}

void Engine::leave(Nanos now) {
  if (port_ == nullptr || failure_) return;
  leaving_ = true;
  for (int i = 0; i < kFarewells; ++i) send_heartbeat(Saying::kLeaves, now);
  port_->flush();
}

bool Engine::send_heartbeat(Saying saying, Nanos now) {
  std::uint8_t* const room = port_->stage();
  if (room == nullptr) return false;
  wire::Header header =
      frame_header(PacketType::kHB, config_.stream.gen, config_.place, window_.next());
  set_window(header, consumer_.ack(), consumer_.credit());
  if (saying != Saying::kWindow) {
    set(header, Flag::kRETX);
    header.exp = RollCall::word(config_.rank, saying == Saying::kLeaves);
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
