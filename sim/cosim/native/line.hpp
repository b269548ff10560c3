// One direction of a link: serialization, propagation, faults.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "frame.hpp"

namespace catchment::cosim {

struct LineTiming {
  Picos byte = 80;    // time of a byte: 100 Gb/s
  Picos latency = 0;  // of PHY, MAC and cable together, from first bit to first bit
};

// Probabilities per frame.
struct LineFaults {
  double loss = 0;
  double damage = 0;     // arrives with a wrong FCS
  double duplicate = 0;  // arrives twice
  double reorder = 0;    // arrives later by up to `delay`, others pass it
  Picos delay = 0;
};

inline constexpr std::size_t kTypes = 16;

struct LineCounts {
  // What was put on the line, lost or not, by packet type (wire::PacketType, 0: not ours). Bytes
  // are those of frames, without FCS.
  std::array<std::uint64_t, kTypes> frames{};
  std::array<std::uint64_t, kTypes> bytes{};
  std::array<std::uint64_t, kTypes> resent{};  // of the frames: retransmissions
  std::uint64_t lost = 0;
  std::uint64_t damaged = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
};

// A frame on a line, for a capture.
struct Sighting {
  std::uint32_t line;
  Picos at;  // first bit leaves
  bool lost;
  std::shared_ptr<const Bytes> bytes;
};

class Line {
 public:
  using Deliver = std::function<void(Arrival&&)>;

  Line(std::uint32_t number, LineTiming timing, std::uint64_t seed)
      : number_(number), timing_(timing), random_(seed) {}

  LineFaults faults;
  Deliver deliver;
  // where frames are noted, while somebody captures
  std::vector<Sighting>* capture = nullptr;

  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] const LineTiming& timing() const { return timing_; }
  [[nodiscard]] const LineCounts& counts() const { return counts_; }
  // When the last frame that was given to the line, and the gap behind it, are through.
  [[nodiscard]] Picos free_at() const { return free_at_; }
  // Bytes that wait at `now`.
  [[nodiscard]] std::size_t backlog(Picos now) const {
    return free_at_ <= now ? 0 : static_cast<std::size_t>((free_at_ - now) / timing_.byte);
  }

  // Puts a frame behind those before it, no earlier than `ready`; its last byte is there by
  // `complete`.
  void send(std::shared_ptr<const Bytes> bytes, bool damaged, Picos ready, Picos complete);

  // Loses `count` frames after `skip` others; of this packet type, if one is given.
  void lose(std::optional<std::uint8_t> type, std::uint64_t skip, std::uint64_t count);

  // Of all that left, with the time: equal runs have equal ones.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  struct Loss {
    std::optional<std::uint8_t> type;
    std::uint64_t skip;
    std::uint64_t count;
  };

  void note(const Bytes& bytes, std::uint8_t type, Picos start);
  bool hit(double probability);
  bool chosen(std::uint8_t type);

  std::uint32_t number_;
  LineTiming timing_;
  std::mt19937_64 random_;
  Picos free_at_ = 0;
  LineCounts counts_;
  std::vector<Loss> losses_;
  std::uint64_t digest_ = 0xCBF29CE484222325U;
};

}  // namespace catchment::cosim
