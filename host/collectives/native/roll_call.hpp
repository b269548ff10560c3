// The ranks tell each other that they are there, and how far they are, while nothing moves.  Pure.
//
// A rank that waits says so through the switch, to all; a rank that hears it answers in the same
// way.  A rank that is gone answers nothing; one that has not called the operation says how far it
// is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catchment/common/serial.hpp"
#include "retransmit_timer.hpp"

namespace catchment::host {

// Names ranks (bits) in a message.
std::string ranks_in(std::uint64_t bits);

class RollCall {
 public:
  RollCall(std::uint32_t ranks, std::uint32_t rank) : rank_(rank), seen_(ranks) {}

  // `rank` says that it sends `next` next.
  void on_call(std::uint32_t rank, Seq next, Nanos now);
  // Notes that this rank waits: a call of its own is due, once in an interval at most.
  void on_waiting(Nanos now);

  // Whether this rank is to say now how far it is.
  bool due(Nanos now) const { return wanted_ && now >= said_at_ + kInterval; }
  Nanos deadline() const { return wanted_ ? said_at_ + kInterval : kNever; }
  void on_said(Nanos now);
  // The switch is there: something has come from it.
  void on_heard() { unanswered_ = 0; }

  // Ranks (bits) that have not been heard since `since`.
  std::uint64_t silent(Nanos since) const;
  // Ranks (bits) that have been heard since `since` and have not sent `seq`.
  std::uint64_t behind(Nanos since, Seq seq) const;
  // For how long the switch has brought nothing, not even this rank's own calls, which it carries
  // back whatever the other ranks do; 0 until that is no accident.
  Nanos unanswered_for(Nanos now) const;
  // The switch has carried this rank's own call back.
  bool heard_itself(Nanos since) const { return seen_[rank_].at >= since; }

 private:
  static constexpr Nanos kInterval = 20'000'000;
  // Calls that are further apart are not in a row.
  static constexpr Nanos kInRow = 10 * kInterval;
  // So many lost in a row are no accident.
  static constexpr std::uint32_t kProof = 8;
  struct Seen {
    Nanos at = 0;
    Seq next = 0;
  };

  std::uint32_t rank_;
  std::vector<Seen> seen_;
  bool wanted_ = false;
  Nanos said_at_ = 0;
  std::uint32_t unanswered_ = 0;  // calls in a row
  Nanos unanswered_since_ = 0;
};

}  // namespace catchment::host
