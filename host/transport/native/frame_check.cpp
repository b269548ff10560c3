#include "frame_check.hpp"

#include <atomic>

namespace catchment::host {
namespace {

using wire::DataType;
using wire::PacketType;

bool sum_type(std::uint8_t dtype) {
  return dtype >= static_cast<std::uint8_t>(DataType::kINT32) &&
         dtype <= static_cast<std::uint8_t>(DataType::kBF16);
}

}  // namespace

std::optional<Reject> check_envelope(std::span<const std::uint8_t> frame, wire::Header& header) {
  if (frame.size() < wire::kHeaderBytes) return Reject::kShort;
  header = wire::decode(frame.data());
  // The frame may lie in memory that others write to: what is checked is not read again.
  std::atomic_signal_fence(std::memory_order_acq_rel);
  if (header.version != wire::kVersion) return Reject::kVersion;
  if ((header.flags & ~wire::kFlagAll) != 0) return Reject::kFlags;
  return std::nullopt;
}

std::optional<Reject> check_content(const wire::Header& header, std::size_t frame_bytes,
                                    const Acceptance& acceptance) {
  const std::size_t payload = frame_bytes - wire::kHeaderBytes;
  const auto type = static_cast<PacketType>(header.type);
  const bool packs =
      wire::has(header.flags, wire::Flag::kPACKED) || wire::has(header.flags, wire::Flag::kMIXED);
  if (packs && (type != PacketType::kFA || !acceptance.packed)) return Reject::kFlags;
  if (type == PacketType::kFA && acceptance.sums) {
    if (!sum_type(header.dtype)) return Reject::kDataType;
    if (header.lanes != acceptance.lanes) return Reject::kLanes;
    if (payload != wire::kLaneBytes * header.lanes) return Reject::kLength;
    return std::nullopt;
  }
  if (type == PacketType::kPARAM && acceptance.parameters) {
    if (header.dtype != static_cast<std::uint8_t>(DataType::kBYTES)) return Reject::kDataType;
    if (header.lanes == 0 || header.lanes > acceptance.param_bytes) return Reject::kLanes;
    if (payload != header.lanes) return Reject::kLength;
    return std::nullopt;
  }
  if (type == PacketType::kMH && acceptance.merged) {
    if (!wire::has(header.flags, wire::Flag::kACKV)) return Reject::kFlags;
    if (header.lanes != 0) return Reject::kLanes;
    if (payload != 0) return Reject::kLength;
    return std::nullopt;
  }
  if (type == PacketType::kCNF && acceptance.confirmations) {
    if (header.lanes != 0) return Reject::kLanes;
    if (payload != 0) return Reject::kLength;
    return std::nullopt;
  }
  return Reject::kType;
}

}  // namespace catchment::host
