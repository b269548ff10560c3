// The ranks tell each other that they are there, and how far they are, while nothing moves.  Pure.
//
// A rank that waits says so through the switch, to all; a rank that hears it answers in the same
// way.  A rank that is gone answers nothing; one that has not called the operation says how far it
// is.  A rank that leaves says where its part of the stream ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
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

  // What a call carries in the header's exp: the rank, -1 - rank where it leaves.
  static std::int8_t word(std::uint32_t rank, bool leaves);

  // The rank in `word` says that it sends `next` next, or that it leaves and never sends it.
  void on_call(std::int8_t word, Seq next, Nanos now);
  // A vector takes so long to come back, at least: on a slow link all ranks' calls, which come down
  // to each, would take the place of what they wait for.
  void on_round_trip(Nanos round_trip) {
    interval_ = std::clamp(round_trip / kShare, kShortest, kLongest);
  }
  // Notes that this rank waits: a call of its own is due, once in an interval at most.
  void on_waiting(Nanos now);

  // Whether this rank is to say now how far it is.
  bool due(Nanos now) const { return wanted_ && now >= said_at_ + interval_; }
  Nanos deadline() const { return wanted_ ? said_at_ + interval_ : kNever; }
  void on_said(Nanos now);
  // The switch is there: something has come from it.
  void on_heard() { unanswered_ = 0; }

  // Ranks (bits) that have not been heard since `since`.
  std::uint64_t silent(Nanos since) const;
  // For how long after `since` the switch has carried words, this rank's own among them.
  Nanos carried(Nanos since) const { return std::max<Nanos>(seen_[rank_].at - since, 0); }
  // Ranks (bits) that must be taken for gone by one that has waited from `since` to `now`: those
  // that were never heard meanwhile, or else those that were silent for the last quarter.  Nothing
  // is known where a switch that is not run, or is cut off, has carried no words for so long: it
  // has lost the others' as well as this rank's own.
  std::optional<std::uint64_t> missing(Nanos since, Nanos now) const;
  // Of the ranks (bits) that are missing since `since`, those to name where `seq` stands still: one
  // that was silent lately, but has sent it, keeps nobody waiting where another has not.
  std::uint64_t to_name(std::uint64_t missing, Nanos since, Seq seq) const;
  // When the rank that has been silent longest was heard, this one among them; 0: one never was.
  Nanos all_heard_at() const;
  // Ranks (bits) that have been heard since `since` and have not sent `seq`.
  std::uint64_t behind(Nanos since, Seq seq) const;
  // The switch has carried this rank's own farewell back, and so to the others.
  bool said_farewell() const { return said_farewell_; }
  // Ranks (bits) that have left.
  std::uint64_t left() const { return left_; }
  // Ranks (bits) that have left and never send `seq`.
  std::uint64_t left_before(Seq seq) const;
  // For how long the switch has brought nothing, not even this rank's own calls, which it carries
  // back whatever the other ranks do; 0 until that is no accident.
  Nanos unanswered_for(Nanos now) const;

 private:
  static constexpr Nanos kShortest = 20'000'000;
  static constexpr Nanos kLongest = 100'000'000;
  static constexpr Nanos kShare = 4;
  // Of the time that a rank has waited, what is long enough to miss somebody in.
  static constexpr Nanos kQuarter = 4;
  // Calls that are so many intervals apart are not in a row.
  static constexpr Nanos kInRow = 10;
  // So many lost in a row are no accident.
  static constexpr std::uint32_t kProof = 8;
  struct Seen {
    Nanos at = 0;
    Seq next = 0;
  };

  std::uint32_t rank_;
  std::vector<Seen> seen_;
  std::uint64_t left_ = 0;  // ranks (bits)
  bool said_farewell_ = false;
  bool wanted_ = false;
  Nanos interval_ = kShortest;
  Nanos said_at_ = 0;
  std::uint32_t unanswered_ = 0;  // calls in a row
  Nanos unanswered_since_ = 0;
};

}  // namespace catchment::host
