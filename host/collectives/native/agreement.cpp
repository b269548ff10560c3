// What the ranks tell each other about operations: what each has called, with which E, and in which
// order.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace catchment::host {

using wire::Flag;

void Engine::on_signatures(Operation& operation, const wire::Header& header,
                           const std::uint8_t* payload, Nanos now) {
  Signature own = operation.call.signature;
  own.cancelled = operation.cancelled;
  const bool tags = signature_lanes(layout_.lanes, layout_.ranks) >= 3;
  if (!tags) own.tag = 0;
  CollectiveFailure failure;
  bool guessed = wire::has(header.flags, Flag::kEXPV);
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) {
    auto said = read_signature(payload, rank, layout_.ranks, layout_.lanes);
    if (said && said->scaling == ScalingMode::kBlock) {
      // The rank's guess, which may differ.
      guessed = guessed && said->exponent == header.next_exp;
      said->exponent = own.exponent;
    }
    if (said && said->cancelled) {
      if (failure.kind != "cancelled") failure = {};
      failure.kind = "cancelled";
      failure.peers |= 1U << rank;
      failure.message = "the operation was cancelled";
    } else if (failure.kind != "cancelled" && said != own) {
      if (failure.peers == 0) {
        failure.message = "rank " + std::to_string(rank) + " calls " +
                          (said ? describe(*said) : "something else") + ", this rank " +
                          describe(own);
      }
      failure.kind = "mismatch";
      failure.hint = "all ranks must call the same operations in the same order";
      failure.peers |= 1U << rank;
    }
  }
  ++operation.outcome.vectors;
  if (failure.peers == 0) {
    operation.agreed = true;
    if (own.scaling == ScalingMode::kBlock) {
      std::ranges::fill(operation.exponents, header.next_exp);
      operation.outcome.exponent = header.next_exp;
      if (operation.trial != 0) end_trial(operation, header.next_exp, guessed);
    }
    if (operation.vectors == 0) {
      complete(operation, now);
    } else if (operation.rides && !operation.missed) {
      const Layout rest = riding(layout_);
      place(operation, 0, exponent_of_vector(operation, 0), rest,
            payload + wire::kLaneBytes * (layout_.lanes - rest.lanes));
      on_placed(operation, header, now);
    }
    return;
  }
  failure.seq = header.seq;
  std::vector<Place> given;
  for (Seq seq = header.seq + 1; seq != window_.next(); ++seq) {
    given.push_back(std::exchange(places_[place_of(seq)], Place{}));
  }
  schedule_.on_mismatch(consumed_, operation, given);
  operation.outcome.failure = std::move(failure);
  complete(operation, now);
}

// Data behind the signatures of their operation.
void Engine::prepare_riding(Operation& operation, wire::Header& header, std::uint8_t* payload) {
  const Signature& signature = operation.call.signature;
  if (signature.scaling == ScalingMode::kFixed && is_float(signature.type)) {
    header.next_exp = static_cast<std::int8_t>(exponent_of(operation, 0, 1, layout_));
    header.flags |= static_cast<std::uint8_t>(Flag::kEXPV);
  }
  const Layout rest = riding(layout_);
  const Cut cut = fill(operation, 0, exponent_of_vector(operation, 0), rest,
                       payload + wire::kLaneBytes * (layout_.lanes - rest.lanes));
  note_cut(operation, cut, operation.trial != 0, header);
}

// Data that leave before E is known.  The places they have are the same on all ranks, whatever each
// guesses.
std::int8_t Engine::begin_trial(Operation& operation, std::int8_t own) {
  const int guess = guess_.of(operation.call.signature, own);
  std::ranges::fill(operation.exponents, static_cast<std::int8_t>(guess));
  operation.tried_saturated = 0;
  operation.tried_nonfinite = 0;
  return static_cast<std::int8_t>(guess);
}

// They count if all ranks have guessed what is agreed now.
void Engine::end_trial(Operation& operation, std::int8_t agreed, bool guessed) {
  guess_.learn(operation.call.signature, agreed);
  stats_.exponents_guessed.add();
  if (guessed) {
    count_cut(operation, operation.tried_saturated, operation.tried_nonfinite);
  } else {
    operation.missed = true;
    stats_.exponents_missed.add();
  }
}

void Engine::on_agendas(const Place& at, const std::uint8_t* payload, Nanos now) {
  std::vector<Agenda> said(layout_.ranks);
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) {
    said[rank] = {read_lane(payload, 2UL * rank), read_lane(payload, 2UL * rank + 1)};
  }
  if (schedule_.on_agenda(consumed_, at.covers, said)) return;
  CollectiveFailure failure;
  failure.kind = "mismatch";
  failure.message = "the ranks give operations different priorities";
  failure.hint = "the same call has the same priority on all ranks";
  failure.fatal = true;
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) {
    if (said[rank].hash != said[layout_.rank].hash) failure.peers |= 1U << rank;
  }
  fail(std::move(failure), now);
}

}  // namespace catchment::host
