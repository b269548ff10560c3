// Decides when a receiver sends a heartbeat.  Pure: times are nanoseconds that the caller passes.
//
// A heartbeat is due
//   - at once when a quarter of the window moved since the last one, or when a message ended;
//   - `delay` after anything moved, or a quarter of a round trip, if that is longer: on a slow link
//     frames are further apart than `delay`, and each would have a heartbeat beside it;
//   - as long after the last one when a duplicate shows that the sender missed that, so that a
//     window that was sent again is answered by few; at once when it is as old already;
//   - else periodically, twice as long each time nothing moved: it repairs a lost credit, and the
//     switch merges only once it has heard everyone.
#pragma once

#include <cstdint>

#include "catchment/common/serial.hpp"
#include "retransmit_timer.hpp"

namespace catchment::host {

struct HeartbeatTimes {
  Nanos delay = 300'000;
  Nanos shortest = 2'000'000;
  Nanos longest = 50'000'000;
};

class Heartbeat {
 public:
  Heartbeat(Seq base, std::uint32_t depth, HeartbeatTimes times);

  // Ack or credit may have moved.
  void on_window(Seq ack, Seq credit, Nanos now);
  // A vector takes so long to come back, at least.
  void on_round_trip(Nanos round_trip);
  // A message has ended: a heartbeat is due at once if ack or credit is new.
  void on_message_end() { flush_ = true; }
  // A duplicate has come: a heartbeat is due even if nothing is new.
  void on_duplicate() { missed_ = true; }

  bool due(Nanos now) const { return now >= deadline(); }
  Nanos deadline() const;

  void on_sent(Seq ack, Seq credit, Nanos now);
  // A frame that carries the same fields was sent.  It says what a heartbeat would, but the switch
  // need not answer it (an old sequence number), so it does not put off the periodic one.
  void on_carried(Seq ack, Seq credit);

 private:
  void said(Seq ack, Seq credit);

  std::uint32_t quarter_;
  HeartbeatTimes times_;
  Nanos delay_;     // times_.delay, or longer on a slow link
  Nanos shortest_;  // times_.shortest, or longer on a slow link
  Seq sent_ack_;
  Seq sent_credit_;
  bool changed_ = false;
  bool flush_ = false;
  bool urgent_ = false;
  bool missed_ = false;
  Nanos sent_at_ = 0;
  Nanos changed_at_ = 0;
  Nanos periodic_at_ = 0;  // the first is due at once
  Nanos period_;
};

}  // namespace catchment::host
