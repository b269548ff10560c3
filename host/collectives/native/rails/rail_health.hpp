// Which rails all ranks use, as all of them have agreed (docs/explanation/rail-failures.md).
//
// Pure: every rank feeds the same rounds in the same order, and so comes to the same verdicts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace catchment::host::rails {

enum class Health : std::uint8_t {
  kUp = 0,
  kDown = 1,
  kProbation = 2,  // it answers everybody again, and has to go on doing so for a while
};

// What a rank says in a round.
struct RoundRecord {
  std::uint64_t planned = 0;    // operations that it has split, and so cannot split otherwise
  std::uint64_t clock_ms = 0;   // rank 0's is the clock of the verdicts
  std::uint32_t suspected = 0;  // rails (bits) over which it has not heard everybody
  std::uint32_t settled = 0;    // rails over which all rounds before this one have come
  std::uint32_t setup = 0;      // a hash over the rails' names and the policy
  std::uint32_t late_us = 0;    // how late its threads were run of late, at most
};

// What follows from a round.
struct Verdict {
  std::uint64_t from = 0;  // the operation from which on `up` holds
  std::uint32_t up = 0;    // rails (bits)
  bool changed = false;
  std::uint32_t asked = 0;      // rails over which the next round goes
  std::uint64_t strangers = 0;  // ranks (bits) whose setup is not that of rank 0
  std::uint32_t late_us = 0;    // of the rank whose threads are run latest
};

class RailHealth {
 public:
  explicit RailHealth(std::uint32_t rails) : rails_(rails), up_((1U << rails) - 1) {}

  // All ranks' records of a round.
  Verdict learn(std::span<const RoundRecord> records);

  std::uint32_t up() const { return up_; }
  Health of(std::uint32_t rail) const;
  // The rail that carries the stream of `rail`: itself, or the lowest one that is up.
  std::uint32_t carrier(std::uint32_t rail) const;

 private:
  struct State {
    bool good = false;
    std::uint64_t good_since = 0;
    std::uint64_t needed = 0;  // milliseconds of probation
    std::uint64_t returned_at = 0;
    bool returned = false;
    std::uint32_t waiting = 0;  // rounds in a row after which not all had come over it

    void return_at(std::uint64_t now) {
      returned = true;
      returned_at = now;
    }
  };

  std::vector<State> rails_;
  std::uint32_t up_;
};

}  // namespace catchment::host::rails
