// A line of the world that knows this project's frames: it counts them by packet type, captures
// them, and sums them up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "frame.hpp"
#include "sim/world/native/frame_line.hpp"

namespace catchment::cosim {

using world::LineTiming;

inline constexpr std::size_t kTypes = 16;

// What was put on a line, lost or not, by packet type (wire::PacketType, 0: not ours). Bytes are
// those of frames, without FCS.
struct TypeCounts {
  std::array<std::uint64_t, kTypes> frames{};
  std::array<std::uint64_t, kTypes> bytes{};
  std::array<std::uint64_t, kTypes> resent{};  // of the frames: retransmissions
};

// A frame on a line, for a capture.
struct Sighting {
  std::uint32_t line;
  Picos at;  // first bit leaves
  bool lost;
  std::shared_ptr<const Bytes> bytes;
};

class ProtocolLine : public world::FrameLine<std::shared_ptr<const Bytes>> {
 public:
  using FrameLine::FrameLine;
  using Deliver = std::function<void(Arrival&&)>;

  Deliver deliver;
  // where frames are noted, while somebody captures
  std::vector<Sighting>* capture = nullptr;

  [[nodiscard]] const TypeCounts& by_type() const { return by_type_; }

  // Puts a frame behind those before it, no earlier than `ready`; its last byte is there by
  // `complete`. False: the queue was full.
  bool put(std::shared_ptr<const Bytes> bytes, bool damaged, Picos ready, Picos complete);

  // Of all that left, with the time: equal runs have equal ones.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  void note(const Bytes& bytes, std::uint8_t type, Picos start);

  TypeCounts by_type_;
  std::uint64_t digest_ = 0xCBF29CE484222325U;
};

}  // namespace catchment::cosim
