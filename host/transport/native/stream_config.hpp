// The settings of an endpoint's stream; host/transport/stream.py checks them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "catchment/common/serial.hpp"
#include "frame_tag.hpp"
#include "wire.hpp"

namespace catchment::host {

struct StreamConfig {
  std::string name;  // "gradients", "parameters", "stream"
  std::uint16_t gen = 0;
  std::uint32_t workers = 1;
  std::uint32_t slots = 1;   // T
  std::uint32_t window = 1;  // D <= T: frames in flight or held
  Seq base = 0;
  std::uint32_t lanes = 0;
  bool packed = false;  // the lanes of a vector are two 16-bit integers each
  std::uint32_t param_bytes = 0;
  std::optional<TagKey> key = std::nullopt;     // frames have tags under it
  std::uint64_t key_frames = wire::kKeyFrames;  // that the key serves for

  // Whether the key serves for so many frames since `base`; without one there is no limit.
  bool serves(std::uint64_t frames) const { return !key || frames <= key_frames; }
};

}  // namespace catchment::host
