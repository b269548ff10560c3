// What the ranks tell each other about operations: what each has called, with which E, and in which
// order.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "frame_header.hpp"

namespace catchment::host {

using wire::Flag;

void Engine::on_signatures(Operation& operation, const wire::Header& header,
                           const std::uint8_t* payload, Nanos now) {
  Signature own = operation.call.signature;
  own.cancelled = operation.cancelled;
  const bool tags = signature_lanes(layout_.lanes, layout_.ranks) >= 3;
  if (!tags) own.tag = 0;
  CollectiveFailure failure;
  Scale riders{header.next_exp, wire::has(header.flags, Flag::kSAT)};
  if (operation.on_grid && own.scaling == ScalingMode::kBlock) riders = on_grid(riders);
  bool guessed = wire::has(header.flags, Flag::kEXPV);
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) {
    auto said = read_signature(payload, rank, layout_.ranks, layout_.lanes);
    if (said && guesses(said->scaling)) {
      // The rank's guess of a rider's E, which may differ.
      guessed = guessed && said->exponent == riders.exponent;
      said->exponent = own.exponent;
    }
    if (said && said->cancelled) {
      if (failure.kind != "cancelled") failure = {};
      failure.kind = "cancelled";
      failure.peers |= std::uint64_t{1} << rank;
      failure.message = "the operation was cancelled";
    } else if (failure.kind != "cancelled" && said != own) {
      if (failure.peers == 0) {
        failure.message = "rank " + std::to_string(rank) + " calls " +
                          (said ? describe(*said) : "something else") + ", this rank " +
                          describe(own);
      }
      failure.kind = "mismatch";
      failure.hint = "all ranks must call the same operations in the same order";
      failure.peers |= std::uint64_t{1} << rank;
    }
  }
  ++operation.outcome.vectors;
  operation.outcome.agreed = now - operation.submitted;
  if (failure.peers == 0) {
    if (negotiates(own.scaling)) operation.outcome.exponent = header.next_exp;
    if (!negotiates(own.scaling) || operation.vectors == 0) {
      operation.agreed = true;
    } else if (operation.rides) {
      agree(operation, {riders}, guessed && !riders.marked);
    } else {
      read_needs(operation, 0, payload);
    }
    if (operation.vectors == 0) {
      complete(operation, now);
    } else if (operation.rides && !operation.missed && has_own_lanes(operation, header, now)) {
      const Layout rest = riding(layout_);
      const Scale scale = scale_of_vector(operation, 0);
      put(operation, 0, scale, rest, header,
          payload + wire::kLaneBytes * (layout_.lanes - rest.lanes));
      on_placed(operation, header, now);
    }
    return;
  }
  if (operation.lacking != 0) {
    failure.kind = "system";
    failure.message = "there is no memory for the " + std::to_string(operation.lacking) +
                      " bytes that all ranks together give";
    failure.hint = "call it on parts of the array";
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
  if (operation.call.signature.scaling == ScalingMode::kFixed) tell_need(operation, 0, header);
  // The signatures' lanes are those of one rank each, so adding them up by halves changes nothing.
  if (packs(operation.call.signature)) set(header, Flag::kPACKED);
  const Layout rest = riding(layout_);
  const Cut cut = fill(operation, 0, scale_of_vector(operation, 0), rest,
                       payload + wire::kLaneBytes * (layout_.lanes - rest.lanes));
  note_cut(operation, cut, operation.trial != 0, header);
}

// Writes what vector `index` needs into its header.  Where the caller gave E, no rank asks for a
// mark, and the largest exponent says that no scale is large enough.
void Engine::tell_need(const Operation& operation, std::uint32_t index,
                       wire::Header& header) const {
  const Scale need = scale_of(operation, index, layout_);
  set(header, Flag::kEXPV);
  header.next_exp = need.exponent;
  if (!need.marked) return;
  if (operation.call.signature.scaling == ScalingMode::kFixed) {
    header.next_exp = static_cast<std::int8_t>(kMostExponent);
  } else {
    set(header, Flag::kSAT);
  }
}

// What the first vectors need, and the guesses on which their data may leave before all ranks'
// needs are known.  The places that data have are the same on all ranks, whatever each guesses.
void Engine::prepare_needs(Operation& operation, Signature& signature, wire::Header& header,
                           std::uint8_t* payload) {
  const auto vectors = static_cast<std::uint32_t>(operation.scales.size());
  std::vector<Need> needs(vectors);
  set(header, Flag::kEXPV);
  header.next_exp = static_cast<std::int8_t>(kLeastExponent);
  for (std::uint32_t i = 0; i < vectors; ++i) {
    Need& need = needs[i];
    need.scale = scale_of(operation, i, layout_);
    need.guess = need.scale.exponent;
    if (signature.scaling == ScalingMode::kDelayed)
      need.guess = signature.exponent;
    else if (operation.trial != 0)
      need.guess =
          guess_.of(signature, i, (operation.on_grid ? on_grid(need.scale) : need.scale).exponent);
    if (operation.trial != 0) operation.scales[i] = {need.guess, false};
    header.next_exp = std::max(header.next_exp, need.scale.exponent);
  }
  if (operation.rides) {
    signature.exponent = needs[0].guess;
    if (needs[0].scale.marked) set(header, Flag::kSAT);
    return;
  }
  const std::size_t own = operation.needs.size() / layout_.ranks;
  for (std::uint32_t lane = 0; lane < own; ++lane) {
    operation.needs[layout_.rank * own + lane] = encode(needs, lane);
  }
  write_needs(operation, 0, payload);
}

// This rank's lanes of a part of the needs: 0 lies behind the signatures, the others are tables.
void Engine::write_needs(const Operation& operation, std::uint32_t part,
                         std::uint8_t* payload) const {
  const auto [first, last, at] = part_of_needs(operation.needs.size(), part, layout_);
  const std::size_t own = operation.needs.size() / layout_.ranks;
  const std::size_t from = std::max(first, layout_.rank * own);
  for (std::size_t lane = from; lane < std::min(last, (layout_.rank + 1) * own); ++lane) {
    write_lane(payload, at + lane - first, operation.needs[lane]);
  }
}

void Engine::read_needs(Operation& operation, std::uint32_t part, const std::uint8_t* payload) {
  const auto [first, last, at] = part_of_needs(operation.needs.size(), part, layout_);
  for (std::size_t lane = first; lane < last; ++lane) {
    operation.needs[lane] = read_lane(payload, at + lane - first);
  }
  if (part != operation.tables) return;
  const auto vectors = static_cast<std::uint32_t>(operation.scales.size());
  const bool block = operation.call.signature.scaling == ScalingMode::kBlock;
  auto scales = agreed_scales(operation.needs, vectors, layout_, block && operation.on_grid);
  const bool guessed = operation.trial != 0 && all_guessed(operation.needs, scales, layout_);
  agree(operation, std::move(scales), guessed);
}

void Engine::on_table(const Place& at, const std::uint8_t* payload, Nanos) {
  ++at.operation->outcome.vectors;
  read_needs(*at.operation, at.index + 1, payload);
}

// Data that have left on a guess count if it is what is agreed; a given one counts if it is enough.
void Engine::agree(Operation& operation, std::vector<Scale> scales, bool guessed) {
  const Signature& signature = operation.call.signature;
  operation.agreed = true;
  if (signature.scaling == ScalingMode::kDelayed) {
    guessed = operation.trial != 0 && std::ranges::all_of(scales, [&](const Scale& scale) {
                return !scale.marked && scale.exponent <= signature.exponent;
              });
    if (guessed) {
      std::ranges::fill(scales, Scale{signature.exponent, false});
    } else if (operation.on_grid) {
      std::ranges::transform(scales, scales.begin(), on_grid);
    }
  } else if (operation.trial != 0) {
    guess_.learn(signature, scales);
  }
  operation.scales = std::move(scales);
  if (operation.trial == 0) return;
  stats_.exponents_guessed.add();
  if (guessed) return;
  operation.missed = true;
  stats_.exponents_missed.add();
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
    if (said[rank].hash != said[layout_.rank].hash) failure.peers |= std::uint64_t{1} << rank;
  }
  fail(std::move(failure), now);
}

}  // namespace catchment::host
