// The controller headers in front of packet-ins and packet-outs: what P4Info calls their fields,
// and how the program lays them out.
#pragma once

#include <string>
#include <string_view>

#include "p4/v1/p4runtime.pb.h"
#include "schema.hpp"

namespace catchment::server {

// Returns the frame for the CPU port: the header "packet_out" made of the metadata, then the
// payload. Throws RpcError(INVALID_ARGUMENT) when metadata is missing, unknown or given twice,
// OUT_OF_RANGE when a value does not fit.
std::string decode_packet_out(const p4::v1::PacketOut& packet, const Schema& schema);

// Returns the message for a frame that came out of the CPU port. A frame shorter than the header
// "packet_in" is given as payload, without metadata.
p4::v1::PacketIn encode_packet_in(std::string_view frame, const Schema& schema);

}  // namespace catchment::server
