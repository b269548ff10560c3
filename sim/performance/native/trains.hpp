// Trains: frames that follow one another as those before them did are carried all at once.
//
// Nothing but an operation, a failure or the end of a message depends on what time it is or how far
// a stream has come; all else depends on differences. So when the whole state of a simulation (what
// waits where, every window, slot and timer, every frame under way) is what it was a period ago,
// but for the clock and for the sequence numbers, then the next period is that one again. As many
// periods as fit before the next operation or failure, or the end of a message, are one step: the
// clock, the sequence numbers and the counts are set ahead. Times are those of single frames, to
// the picosecond. Where states do not come again (frames are lost, timers of streams that never
// meet), frames go one by one.
//
// A state has as much in it as is under way, which is much on long lines. Comparing states never
// costs more than some of the events' own work: where it would, only each second, fourth, ...
// heartbeat has its state compared.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "nic_model.hpp"
#include "state_hash.hpp"
#include "switch_model.hpp"

namespace catchment::performance {

class Trains {
 public:
  Trains(Fabric& fabric, NicModel& nics, SwitchModel& switches)
      : fabric_(fabric), nics_(nics), switches_(switches) {}

  // An operation went on, or something failed or came back.
  void on_appointment() {
    laps_.clear();
    first_.reset();
    anchor_.reset();
    done_ = false;
  }

  // A member has sent a heartbeat, after so many events of the simulation. One member's heartbeats
  // are the times at which states are compared; periods may be skipped until `end`.
  void on_heartbeat(std::uint32_t member, std::uint64_t events, Picos end);

  // Picoseconds of the simulated time that were skipped.
  [[nodiscard]] Picos skipped() const { return skipped_; }
  // Numbers that fingerprints were made of.
  [[nodiscard]] std::uint64_t compared() const { return compared_; }

 private:
  // A state that may come again, and what had been counted by then.
  struct Lap {
    Fingerprint state;
    Picos at = 0;
    std::vector<Seq> bases;
    std::vector<world::LineCounts> lines;
    std::vector<TypeCounts> types;
    SwitchCounts switches;
  };

  // Nothing if the state has parts that no fingerprint sees.
  std::optional<Lap> look();
  Fingerprint fingerprint(const std::vector<Seq>& bases);
  [[nodiscard]] std::uint64_t periods(const Lap& before, const Lap& now, Picos end) const;
  void skip(const Lap& before, const Lap& now, std::uint64_t times);
  [[nodiscard]] std::optional<std::uint32_t> stream_of(const Happening& what) const;

  Fabric& fabric_;
  NicModel& nics_;
  SwitchModel& switches_;
  std::optional<std::uint32_t> anchor_;  // whose heartbeats count
  std::uint64_t heard_ = 0;              // of them, since the last appointment
  std::uint64_t stride_ = 1;             // of so many, one has its state compared; a power of two
  std::uint64_t count_ = 0;              // of those
  std::uint64_t compared_ = 0;
  std::deque<Lap> laps_;      // the last ones, the latest first
  std::optional<Lap> first_;  // one long ago, for long periods
  bool done_ = false;         // until the next appointment there is nothing to skip
  Picos skipped_ = 0;
};

}  // namespace catchment::performance
