// One collective operation: what was asked for, how far it is, and what came of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catchment/common/serial.hpp"
#include "retransmit_timer.hpp"
#include "scale.hpp"
#include "signature.hpp"
#include "spread.hpp"

namespace catchment::host {

// The caller keeps the memory alive and in place until the operation is done.
struct Call {
  Signature signature;
  const std::uint8_t* source = nullptr;
  std::uint8_t* target = nullptr;  // may be the source
  int priority = 0;
  Nanos timeout = 0;  // without progress; 0: the communicator's
  // Of the array that this is a part of, the others of which go over other rails; 0: it is all.
  std::uint64_t elements_in_all = 0;
  // Of all_gather: where the target has the ranks' parts, and the source too where it is the
  // target. Of reduce_scatter: where the source has them, and the target too where it is the
  // source.
  std::optional<Spread> spread = {};
};

// What host.collectives.CollectiveError carries.
struct CollectiveFailure {
  std::string kind;
  std::string message;
  std::string hint;
  std::uint64_t peers = 0;  // bits of ranks
  std::optional<Seq> seq;
  bool fatal = false;
};

struct CollectiveOutcome {
  std::optional<CollectiveFailure> failure;
  Nanos latency = 0;
  Nanos agreed = 0;           // from the call to the sum of the signatures
  std::uint64_t vectors = 0;  // received
  std::uint64_t retransmissions = 0;
  std::uint64_t saturated = 0;
  std::uint64_t nonfinite = 0;
  bool any_saturated = false;
  int exponent = -128;  // largest that was agreed
};

struct Operation : std::enable_shared_from_this<Operation> {
  explicit Operation(Call asked) : call(std::move(asked)) {}

  const Call call;
  std::uint64_t id = 0;       // order of the calls
  std::uint32_t vectors = 0;  // of data
  std::uint64_t lanes = 0;    // in use in them
  Nanos submitted = 0;
  Nanos begun_by = 0;                  // when its first turn had ended
  std::vector<std::uint8_t> gathered;  // max: everyone's array

  // Data vectors that leave at once, on a guess of E, and again from the first on if it was wrong:
  // all or none.
  std::uint32_t trial = 0;
  // Negotiated exponents are on the grid (scale.hpp).
  bool on_grid = false;
  // So few lanes that they leave in the vector of signatures (on trial if E is guessed).
  bool rides = false;
  // Vectors between the signatures and the data with what there was no room for behind the
  // signatures of each vector's needs (vector_needs.hpp).
  std::uint32_t tables = 0;

  // The schedule keeps these.
  bool begun = false;  // its first vector has a place
  std::uint32_t tables_sent = 0;
  std::uint32_t tried = 0;  // data vectors sent on the guess
  std::uint32_t next = 0;   // data vector to be sent next

  // The engine keeps these.
  bool cancelled = false;
  std::uint64_t lacking = 0;           // bytes that this rank has not got, and so cancels it
  bool agreed = false;                 // all ranks want the same
  bool missed = false;                 // and E is not what all of them have guessed
  std::uint32_t received = 0;          // data vectors
  std::vector<std::uint32_t> needs;    // all ranks', for the vectors that the signatures tell about
  std::vector<Scale> scales;           // of vector i, at i modulo the stream's slots
  std::int8_t whole = kLeastExponent;  // kWhole: the E that this rank's whole array needs
  std::uint64_t resent_before = 0;
  CollectiveOutcome outcome;  // valid once it is done

  std::atomic<bool> done{false};

  // The guess was right, and so everything has left.
  bool sent_on_trial() const { return begun && trial != 0 && tried == trial && agreed && !missed; }
  // Everything has left on a guess that may be wrong.
  bool on_trial() const { return begun && trial != 0 && tried == trial && !agreed; }
};

}  // namespace catchment::host
