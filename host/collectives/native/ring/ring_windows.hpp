// What every rank of a ring has said of its window, and the least of it.  Pure.
//
// A heartbeat goes round the whole ring, so that its sender knows that the ring lives.
#pragma once

#include <cstdint>
#include <vector>

#include "catchment/common/serial.hpp"
#include "ring_message.hpp"

namespace catchment::host::ring {

class RingWindows {
 public:
  RingWindows(std::uint32_t rank, std::uint32_t ranks, Sink& sink)
      : rank_(rank), windows_(ranks), sink_(sink) {}

  // This rank's heartbeat (HB).
  void on_own(const wire::Header& header);
  // A heartbeat from the rank before.
  void on_message(const Message& message);

 private:
  struct Window {
    bool known = false;
    Seq ack = 0;
    Seq credit = 0;
  };

  void learn(std::uint32_t rank, const wire::Header& header);
  // To the engine, as a switch merges it (MH).
  void tell(const wire::Header& header);

  std::uint32_t rank_;
  std::vector<Window> windows_;
  Sink& sink_;
};

}  // namespace catchment::host::ring
