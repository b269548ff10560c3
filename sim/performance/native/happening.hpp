// What happens in a simulation: small values without pointers, so that an event is moved by
// copying.
#pragma once

#include <cstddef>
#include <cstdint>

#include "catchment/common/serial.hpp"
#include "sim/world/native/world.hpp"
#include "wire.hpp"

namespace catchment::performance {

using world::Picos;

// A frame without a payload, and what every frame has before its payload.
inline constexpr std::size_t kHeaderFrame =
    wire::kEthernetBytes + wire::kIpv4Bytes + wire::kUdpBytes + wire::kHeaderBytes;

// What of a frame decides something. Values are not simulated; `sum` stands for them: contributions
// add up modulo 2^32, as lanes do.
struct Frame {
  Frame() = default;
  // A copy is made field by field: a processor that loads several fields at once has to wait for
  // each that was just stored.
  Frame(const Frame& other)
      : seq(other.seq),
        ack(other.ack),
        credit(other.credit),
        sum(other.sum),
        type(other.type),
        flags(other.flags) {}
  Frame& operator=(const Frame& other) {
    seq = other.seq;
    ack = other.ack;
    credit = other.credit;
    sum = other.sum;
    type = other.type;
    flags = other.flags;
    return *this;
  }
  ~Frame() = default;

  Seq seq = 0;
  Seq ack = 0;
  Seq credit = 0;
  std::uint32_t sum = 0;
  wire::PacketType type = wire::PacketType::kPA;
  std::uint8_t flags = 0;
};

enum class What : std::uint8_t {
  kAtSwitch,   // a frame has come in; target: the row that admits it
  kAtMember,   // a frame has come in; target: the member
  kAtProgram,  // a frame has come in; target: the member in software
  kWake,       // a program goes on; target: the member in software
  kPump,       // a host's MAC takes more; target: the host
  kVectors,    // a push is in the NIC's ring; target: the member, seq: frames, ack: the operation
  kHeartbeat,  // an interval is over; target: the member
  kTimeout,    // a retransmission may be due; target: the member
  kDone,       // an operation has ended; target: the operation
  kIncident,   // something fails or comes back; target: the incident
};

// Whether it is what an operation or a failure has brought about, at a time of its own.
inline bool is_appointed(What what) {
  return what == What::kVectors || what == What::kDone || what == What::kIncident;
}

struct Happening {
  What what = What::kDone;
  std::uint32_t target = 0;
  Frame frame;
};

using World = world::World<Happening>;

}  // namespace catchment::performance
