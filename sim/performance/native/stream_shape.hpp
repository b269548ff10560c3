// A member's end of a stream, as a job's description gives it.
#pragma once

#include <cstdint>

#include "happening.hpp"

namespace catchment::performance {

struct StreamShape {
  Seq base = 0;
  std::uint32_t window = 1;      // D: frames in flight, or held
  std::uint32_t slots = 1;       // T
  std::uint32_t data_bytes = 0;  // of a data frame, without FCS
  std::uint32_t stream = 0;      // which one it is, of all of the simulation
};

// Latencies of the protocol in a NIC.
struct StreamTimers {
  Picos heartbeat = 0;     // between heartbeats
  Picos rto = 0;           // first timeout
  Picos rto_most = 0;      // doubled up to this
  Picos resend_delay = 0;  // of this worker, on top
};

}  // namespace catchment::performance
