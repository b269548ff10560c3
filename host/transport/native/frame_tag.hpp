// The tag at the end of a frame: SipHash-2-4 (Aumasson, Bernstein, 2012) over header and payload.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace catchment::host {

// The two halves of a stream's key, each with its first byte lowest.
using TagKey = std::array<std::uint64_t, 2>;

TagKey tag_key(std::span<const std::uint8_t, 16> bytes);

// `frame`: header and payload, at least a header.
std::uint64_t frame_tag(const TagKey& key, std::span<const std::uint8_t> frame);

}  // namespace catchment::host
