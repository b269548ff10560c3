// Our header as every sender at a host begins it; what a frame carries beside is the sender's.
#pragma once

#include <cstdint>

#include "catchment/common/serial.hpp"
#include "wire.hpp"

namespace catchment::host {

inline void set(wire::Header& header, wire::Flag flag) {
  header.flags |= static_cast<std::uint8_t>(flag);
}

// The fields that no frame is without; all others are zero.
inline wire::Header frame_header(wire::PacketType type, std::uint16_t gen, std::uint32_t wid,
                                 Seq seq) {
  wire::Header header;
  header.version = wire::kVersion;
  header.type = static_cast<std::uint8_t>(type);
  header.gen = gen;
  header.wid = static_cast<std::uint8_t>(wid);
  header.seq = seq;
  return header;
}

// The window of what the sender receives, as a heartbeat or a vector tells it.
inline void set_window(wire::Header& header, Seq ack, Seq credit) {
  set(header, wire::Flag::kACKV);
  header.ack = ack;
  header.credit = credit;
}

}  // namespace catchment::host
