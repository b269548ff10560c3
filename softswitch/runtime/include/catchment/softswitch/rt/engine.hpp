// What a running program is given besides its own state: frames in and out, replication, time,
// randomness, hooks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catchment/softswitch/entities.hpp"

namespace catchment::softswitch::rt {

struct InputFrame {
  const std::uint8_t* data = nullptr;
  std::uint32_t length = 0;
  std::uint32_t port = 0;
};

struct OutFrame {
  std::uint8_t* data = nullptr;  // goes back to the pool when sent
  std::uint32_t length = 0;
  std::uint32_t port = 0;
};

/// Memory that a frame is written to as it leaves the program.
struct Room {
  std::uint8_t* data = nullptr;  // nullptr: none
  std::size_t bytes = 0;
  bool streams = false;  // whole lines are stored past the caches
};

/// Rooms where receivers read: a frame that is written there needs no copy.
class Rooms {
 public:
  Rooms() = default;
  virtual ~Rooms() = default;
  Rooms(const Rooms&) = delete;
  Rooms& operator=(const Rooms&) = delete;

  /// The room of the next frame that leaves by a port; the frame may turn out not to use it.
  virtual Room room(std::uint32_t port) = 0;
  /// A frame of `length` bytes, not 0, is in the room that `port` was last given.
  virtual void filled(std::uint32_t port, std::uint32_t length) = 0;
};

/// Frames that are to leave, in buffers of one size from a bounded pool. Last freed, first used:
/// they stay in cache.
class Output {
 public:
  /// `capacity` bytes each, `count` of them.
  Output(std::size_t count, std::size_t capacity)
      : capacity_(capacity),
        slab_(std::make_unique_for_overwrite<std::uint8_t[]>(count * capacity)),
        frames_(count),
        free_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      free_[i] = slab_.get() + (count - 1 - i) * capacity;
    }
    free_count_ = count;
  }

  /// nullptr: none is left.
  std::uint8_t* reserve() { return free_count_ == 0 ? nullptr : free_[--free_count_]; }
  void release(std::uint8_t* buffer) { free_[free_count_++] = buffer; }
  void commit(std::uint8_t* buffer, std::uint32_t length, std::uint32_t port) {
    frames_[frame_count_++] = {buffer, length, port};
  }

  /// Frames get rooms of these first, and buffers where there is none; nullptr: buffers alone.
  void use(Rooms* rooms) { rooms_ = rooms; }
  [[nodiscard]] Rooms* rooms() const { return rooms_; }

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::size_t size() const { return frame_count_; }
  [[nodiscard]] const OutFrame& operator[](std::size_t i) const { return frames_[i]; }
  /// Takes frame `from` to place `to` of the list.
  void move(std::size_t from, std::size_t to) { frames_[to] = frames_[from]; }
  /// Forgets all frames from place `count` on; their buffers are not the list's any more.
  void truncate(std::size_t count) { frame_count_ = count; }

 private:
  std::size_t capacity_;
  std::unique_ptr<std::uint8_t[]> slab_;  // memory is touched as it is used
  std::vector<OutFrame> frames_;
  std::vector<std::uint8_t*> free_;
  std::size_t frame_count_ = 0;
  std::size_t free_count_ = 0;
  Rooms* rooms_ = nullptr;
};

struct ReplicaList {
  const Replica* replicas = nullptr;
  std::uint32_t count = 0;
};

struct CloneTarget {
  ReplicaList to;
  std::uint32_t truncate_to = 0;  // bytes, 0: whole
  bool present = false;
};

inline constexpr std::size_t kGroups = 65536;
inline constexpr std::size_t kSessions = 32768;
inline constexpr std::size_t kPorts = 512;

/// Rounds of loops that a frame may take, with all of its copies and passes.
inline constexpr std::uint32_t kDefaultMaxSteps = 65536;
inline constexpr std::uint32_t kMostMaxSteps = 1U << 24;

/// Drop causes by number as in DropCause (dataplane.hpp).
inline constexpr std::size_t kEngineDropCauses = 9;

struct PortCounters {
  std::uint64_t rx_packets = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t drops[kEngineDropCauses] = {};
};

/// xorshift128+: fast, and the same sequence for the same seed.
class Random {
 public:
  explicit Random(std::uint64_t seed = 1)
      : a_(seed ^ 0x9E3779B97F4A7C15U), b_(seed * 0xBF58476D1CE4E5B9U + 1) {
    for (int i = 0; i < 16; ++i) {
      (void)next();
    }
  }
  std::uint64_t next() {
    std::uint64_t x = a_;
    const std::uint64_t y = b_;
    a_ = y;
    x ^= x << 23;
    b_ = x ^ y ^ (x >> 17) ^ (y >> 26);
    return b_ + y;
  }
  /// Uniform in low .. high, both inclusive; `low` if low > high.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    if (low >= high) {
      return low;
    }
    const std::uint64_t span = high - low + 1;
    if (span == 0) {
      return next();
    }
    return low + static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * span) >> 64);
  }

 private:
  std::uint64_t a_;
  std::uint64_t b_;
};

/// What the packet thread hands to the control side; implemented by the Dataplane.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual void digest(std::uint32_t digest_id, std::vector<std::string> members) = 0;
  virtual void log(const std::string& message) = 0;
  /// A frame was dropped because its loops took too many rounds; `where` is the loop's place in the
  /// program.
  virtual void step_limit(std::uint32_t port, const char* where) = 0;
};

struct Engine {
  Output* out = nullptr;            // the frames that leave the program's present run
  ReplicaList* groups = nullptr;    // kGroups of them
  CloneTarget* sessions = nullptr;  // kSessions of them
  PortCounters* ports = nullptr;    // kPorts of them
  Random* random = nullptr;
  std::vector<std::uint8_t> scratch;
  std::vector<std::string> digest;  // members of the one that is sent when ingress ends
  Hooks* hooks = nullptr;
  std::uint64_t now_us = 0;  // since the switch started
  std::uint32_t drop_port = 511;
  std::uint32_t max_passes = 64;
  std::uint32_t max_frame_bytes = 9728;
  std::uint32_t max_steps = kDefaultMaxSteps;
  bool shared = false;           // other processors change the same state in turns with this one
  std::uint32_t steps_left = 0;  // of the frame that is being worked on
};

/// Ends the work on a frame whose loops would take more rounds than Engine::max_steps.
struct StepLimit {
  const char* where = nullptr;  // FILE:LINE:COLUMN of the loop
};

/// Takes one round of a loop whose rounds the packet decides. Throws StepLimit.
inline void take_step(Engine& engine, const char* where) {
  if (engine.steps_left == 0) [[unlikely]] {
    throw StepLimit{where};
  }
  engine.steps_left -= 1;
}

}  // namespace catchment::softswitch::rt
