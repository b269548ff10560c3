// The two ends of a ring. Neither believes what the other side wrote: an end's own position is kept
// in private memory, the other's position and every length are read once and checked.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "catchment/shm/layout.hpp"
#include "catchment/shm/stream.hpp"

namespace catchment::shm {

/// A ring in mapped memory.
struct RingView {
  std::uint64_t* written = nullptr;
  std::uint64_t* read = nullptr;
  std::uint32_t* lengths = nullptr;
  std::uint8_t* cells = nullptr;
  Geometry geometry;
};

/// What the other side wrote that cannot be.
struct Fault {
  enum class Kind { none, written, read, length };
  Kind kind = Kind::none;
  std::uint64_t value = 0;     // as found
  std::uint64_t position = 0;  // our own
  std::uint32_t most = 0;      // cells, or bytes

  explicit operator bool() const { return kind != Kind::none; }
  [[nodiscard]] std::string text() const;
};

class Producer {
 public:
  explicit Producer(const RingView& ring) : ring_(ring) {}

  /// Whether one more frame fits; false when the ring is full (or faulty).
  bool has_room() { return has_room_for(1); }
  /// The same for `count` frames, at most as many as there are cells.
  bool has_room_for(std::uint32_t count) {
    const std::uint64_t most = ring_.geometry.cells - count;
    if (staged_ - read_ > most && !(look() && staged_ - read_ <= most)) {
      std::atomic_ref(full_at_).store(read_, std::memory_order_relaxed);
      return false;
    }
    return true;
  }
  /// Goes on where the last of several that fill a ring in turns has stopped. What was
  /// put and not published is forgotten.
  void go_on() {
    published_ = std::atomic_ref(*ring_.written).load(std::memory_order_acquire);
    staged_ = published_;
    streamed_ = false;
  }
  /// Queues a copy of a frame of 1 to cell_bytes bytes. Only after has_room().
  void put(const Pieces& frame, Mark mark = {}) {
    const bool streamed = copy_.put(cell(), frame);
    queue(static_cast<std::uint32_t>(frame.size()), mark, streamed);
  }
  /// The cell of the next frame, for one that is written there, and whether its lines had better be
  /// stored past the caches. Only after has_room().
  std::uint8_t* begin(bool& streams) {
    streams = copy_.begin(last_);
    return cell();
  }
  /// Queues the frame that was written there, as begin() said.
  void end(std::uint32_t length) { queue(length, {}, copy_.end(length)); }
  /// Shows what is queued to the other side; false when there was nothing.
  bool publish() {
    if (staged_ == published_) {
      return false;
    }
    published_ = staged_;
    if (streamed_) {
      end_of_stream();
      streamed_ = false;
    }
    std::atomic_ref(*ring_.written).store(published_, std::memory_order_release);
    return true;
  }
  /// How many frames have been published; wraps.
  [[nodiscard]] std::uint64_t published() const { return published_; }
  /// Whether the consumer has given back all frames up to that number.
  [[nodiscard]] bool taken(std::uint64_t number) const {
    const std::uint64_t read = std::atomic_ref(*ring_.read).load(std::memory_order_acquire);
    return static_cast<std::int64_t>(read - number) >= 0;
  }
  /// Whether has_room() is worth a call: the consumer has moved since the ring was last found full.
  /// May be asked by another thread than the one that sends.
  [[nodiscard]] bool may_have_room() const {
    return std::atomic_ref(*ring_.read).load(std::memory_order_acquire) !=
           std::atomic_ref(full_at_).load(std::memory_order_relaxed);
  }
  [[nodiscard]] const Fault& fault() const { return fault_; }

 private:
  [[nodiscard]] std::uint8_t* cell() const {
    return ring_.cells + place() * ring_.geometry.cell_bytes;
  }
  void queue(std::uint32_t length, Mark mark, bool streamed) {
    streamed_ |= streamed;
    std::atomic_ref(ring_.lengths[place()]).store(length | mark.bits(), std::memory_order_relaxed);
    last_ = length;
    ++staged_;
  }
  [[nodiscard]] std::size_t place() const { return staged_ & (ring_.geometry.cells - 1); }
  /// Looks how far the consumer is; whether there is room.
  bool look() {
    const std::uint64_t read = std::atomic_ref(*ring_.read).load(std::memory_order_acquire);
    // The consumer moves forward, and not beyond what was published.
    if (published_ - read > published_ - read_) {
      fault_ = {Fault::Kind::read, read, published_, ring_.geometry.cells};
      return false;
    }
    read_ = read;
    return staged_ - read_ < ring_.geometry.cells;
  }

  RingView ring_;
  std::uint64_t staged_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t read_ = 0;  // the consumer's position, as last seen
  std::uint32_t last_ = 0;  // the last frame's length, which the next one's may be
  CopyAcross copy_;
  bool streamed_ = false;  // since the last publish()
  /// The consumer's position when the ring was found full.
  mutable std::uint64_t full_at_ = ~std::uint64_t{0};
  Fault fault_;
};

class Consumer {
 public:
  explicit Consumer(const RingView& ring) : ring_(ring) {}

  /// Frames that wait now; 0 also when the ring is faulty.
  std::uint32_t available() {
    const std::uint64_t written = std::atomic_ref(*ring_.written).load(std::memory_order_acquire);
    if (written - position_ > ring_.geometry.cells) {
      fault_ = {Fault::Kind::written, written, position_, ring_.geometry.cells};
      return 0;
    }
    written_ = written;
    return static_cast<std::uint32_t>(written_ - position_);
  }
  /// How many have been taken; wraps.
  [[nodiscard]] std::uint64_t taken() const { return position_; }
  /// Whether any of the available frames is left.
  [[nodiscard]] bool has_next() const { return position_ != written_; }
  /// Passes the next of the available frames, which stays in its cell until release(); nothing when
  /// the ring is faulty. The producer may change the bytes meanwhile, if it is broken or hostile:
  /// what is checked must not be read again.
  std::span<std::uint8_t> next() {
    Mark mark;
    return take(mark, ~std::uint32_t{0});
  }
  /// The same for a ring whose producer may mark frames.
  std::span<std::uint8_t> next(Mark& mark) { return take(mark, Mark::kLengthMask); }
  /// Gives what was taken back to the producer; false when there was nothing.
  bool release() {
    if (position_ == released_) {
      return false;
    }
    released_ = position_;
    std::atomic_ref(*ring_.read).store(released_, std::memory_order_release);
    return true;
  }
  /// Most of the ring is empty again, as far as we have looked.
  [[nodiscard]] bool roomy() const {
    return (written_ - position_) * 4 <= ring_.geometry.cells * std::uint64_t{3};
  }
  [[nodiscard]] const Fault& fault() const { return fault_; }

 private:
  std::span<std::uint8_t> take(Mark& mark, std::uint32_t length_bits) {
    const std::size_t place = position_ & (ring_.geometry.cells - 1);
    // Read once: what is checked is what is used.
    const std::uint32_t word =
        std::atomic_ref(ring_.lengths[place]).load(std::memory_order_relaxed);
    const std::uint32_t length = word & length_bits;
    if (length - 1 >= ring_.geometry.cell_bytes) {
      fault_ = {Fault::Kind::length, word, position_, ring_.geometry.cell_bytes};
      return {};
    }
    mark = Mark::of(word & ~length_bits);
    ++position_;
    return {ring_.cells + place * ring_.geometry.cell_bytes, length};
  }

  RingView ring_;
  std::uint64_t position_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t written_ = 0;  // the producer's position, as last seen
  Fault fault_;
};

}  // namespace catchment::shm
