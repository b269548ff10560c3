// Nothing that arrives is trusted: what a frame must look like, and why it is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wire.hpp"

namespace catchment::host {

enum class Reject : std::uint8_t {
  kShort,       // less than a header
  kSource,      // not from the switch
  kVersion,     //
  kFlags,       // an unassigned flag, or ack and credit missing where they are the message
  kGeneration,  // no stream of this endpoint
  kType,        // a type that this side of the stream does not take
  kDataType,    //
  kLanes,       // not what the switch program was built for, or 0 bytes, or too many
  kLength,      // lanes and the datagram disagree
  kAck,         // acknowledges what was never sent, or more credit than a window
  kWindow,      // beyond the credit that was given
  kDuplicate,   // already here
  kTag,         // wrong or missing, where frames have tags
};
inline constexpr std::size_t kRejectCount = 13;

constexpr std::string_view name(Reject reason) {
  switch (reason) {
    case Reject::kShort:
      return "short";
    case Reject::kSource:
      return "source";
    case Reject::kVersion:
      return "version";
    case Reject::kFlags:
      return "flags";
    case Reject::kGeneration:
      return "generation";
    case Reject::kType:
      return "type";
    case Reject::kDataType:
      return "dtype";
    case Reject::kLanes:
      return "lanes";
    case Reject::kLength:
      return "length";
    case Reject::kAck:
      return "ack";
    case Reject::kWindow:
      return "window";
    case Reject::kDuplicate:
      return "duplicate";
    case Reject::kTag:
      return "tag";
  }
  return "unknown";
}

// What one stream may receive at this endpoint.
struct Acceptance {
  std::uint16_t gen = 0;
  bool sums = false;        // FA
  bool packed = false;      // sums of packed lanes, too: the receiver says what it wants
  bool parameters = false;  // PARAM
  bool merged = false;      // MH
  std::uint32_t lanes = 0;
  std::uint32_t param_bytes = 0;
  bool confirmations = false;  // CNF
};

// Reads version and generation; the rest needs the stream that the generation names.
std::optional<Reject> check_envelope(std::span<const std::uint8_t> frame, wire::Header& header);

std::optional<Reject> check_content(const wire::Header& header, std::size_t frame_bytes,
                                    const Acceptance& acceptance);

}  // namespace catchment::host
