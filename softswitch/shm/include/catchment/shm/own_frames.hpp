// What a peer that runs the program sends to itself. Such a frame has its place among those of the
// peer's ring, but lies in memory that no other processor has: who makes it is who reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "catchment/shm/layout.hpp"

namespace catchment::shm {

class OwnFrames {
 public:
  explicit OwnFrames(const Geometry& geometry);

  /// Whether one more frame fits; one that does not has to go into the ring.
  [[nodiscard]] bool has_room() const { return put_ - released_ < frames_.size(); }
  /// Memory for the next frame: cell_bytes. Only after has_room().
  std::uint8_t* begin();
  /// Queues the frame that was written there, of 1 to cell_bytes bytes, behind the first `behind`
  /// frames of the ring.
  void end(std::uint32_t length, std::uint64_t behind);

  /// How many wait.
  [[nodiscard]] std::uint32_t waiting() const { return static_cast<std::uint32_t>(put_ - taken_); }
  /// Whether one waits, and its turn has come when so many frames of the ring were taken.
  [[nodiscard]] bool is_due(std::uint64_t taken_of_ring) const {
    return waiting() != 0 && static_cast<std::int64_t>(taken_of_ring - frame(taken_).behind) >= 0;
  }
  /// The first of those that wait, before its turn or not; nothing: none does.
  [[nodiscard]] std::span<std::uint8_t> front() const;
  /// Takes that one, which stays where it is until release().
  void take() { ++taken_; }
  /// Forgets those that were taken.
  void release();

 private:
  struct alignas(kLine) Line {
    std::uint8_t bytes[kLine];
  };
  struct Frame {
    std::uint32_t length = 0;
    std::uint64_t behind = 0;
  };

  [[nodiscard]] const Frame& frame(std::uint64_t number) const {
    return frames_[number % frames_.size()];
  }
  [[nodiscard]] std::uint8_t* cell(std::uint64_t number) const {
    return lines_[number % frames_.size() * lines_of_cell_].bytes;
  }

  std::size_t lines_of_cell_;
  std::unique_ptr<Line[]> lines_;  // once one is needed
  std::vector<Frame> frames_;      // by number
  std::uint64_t put_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace catchment::shm
