// One side of an attached port: both rings, and waking the other side when it sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "catchment/shm/link.hpp"
#include "catchment/shm/mapping.hpp"
#include "catchment/shm/own_frames.hpp"
#include "catchment/shm/ring.hpp"

namespace catchment::shm {

class Channel {
 public:
  Channel(Mapping mapping, Link link, Side side)
      : mapping_(std::move(mapping)),
        link_(std::move(link)),
        out_(mapping_.outgoing(side)),
        in_(mapping_.incoming(side)),
        own_(mapping_.geometry()),
        own_waiting_(&mapping_.waiting(side)),
        other_waiting_(&mapping_.waiting(side == Side::peer ? Side::switch_side : Side::peer)) {}

  [[nodiscard]] const Mapping& mapping() const { return mapping_; }
  [[nodiscard]] Link& link() { return link_; }
  /// put(), and publish() when a batch is complete.
  [[nodiscard]] Producer& out() { return out_; }
  /// Take with next(), and release() when a batch is done.
  [[nodiscard]] Consumer& in() { return in_; }
  /// Frames that this side has for itself.
  [[nodiscard]] OwnFrames& own() { return own_; }
  [[nodiscard]] const OwnFrames& own() const { return own_; }

  /// Frames that wait now, of the ring and of this side's own; 0 also when the ring is faulty.
  std::uint32_t available() {
    const std::uint32_t incoming = in_.available();
    return in_.fault() ? 0 : incoming + own_.waiting();
  }
  /// Passes the next of the available frames, as Consumer::next() does.
  std::span<std::uint8_t> next() {
    if (own_.is_due(in_.taken())) {
      const std::span<std::uint8_t> frame = own_.front();
      own_.take();
      return frame;
    }
    return in_.has_next() ? in_.next() : std::span<std::uint8_t>{};
  }

  /// Shows what was committed to the other side, and wakes it if it sleeps.
  void publish() {
    if (out_.publish()) {
      wake_if(kForFrames);
    }
  }
  /// The first half of publish(), for a ring that several fill; wake() is the second.
  void show() { out_.publish(); }
  void wake() { wake_if(kForFrames); }
  /// Gives the cells of what was taken back, and wakes the other side if it waits for enough of
  /// them.
  void release() {
    own_.release();
    if (in_.release() && in_.roomy()) {
      wake_if(kForRoom);
    }
  }

  /// Asks to be woken for `events` (bits of Waiting). Returns those that are there already: do not
  /// sleep.
  std::uint32_t arm(std::uint32_t events) {
    const std::uint32_t word = events == 0 ? 0 : events | mapping_.attachment_bits();
    std::atomic_ref(*own_waiting_).store(word, std::memory_order_relaxed);
    // Either we see what the other side did before, or it sees that we wait.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return ready(events);
  }
  /// Asks for nothing any more. False: the other side has sent a wake-up, or will in a moment.
  bool disarm() {
    return std::atomic_ref(*own_waiting_).exchange(0, std::memory_order_acq_rel) != 0;
  }
  /// Returns those of `events` that are true now: frames have come, there may be room.
  std::uint32_t ready(std::uint32_t events) {
    const std::uint32_t frames = (events & kForFrames) != 0 && available() != 0 ? kForFrames : 0U;
    const std::uint32_t room = (events & kForRoom) != 0 && out_.may_have_room() ? kForRoom : 0U;
    return frames | room;
  }

  /// The memory in which frames lie that a caller may still look at.
  struct Memory {
    Mapping rings;
    OwnFrames own;
  };
  /// Hangs up, and gives away the memory.
  [[nodiscard]] Memory retire() && { return {std::move(mapping_), std::move(own_)}; }

  /// What the other side wrote that cannot be.
  [[nodiscard]] const Fault& fault() const { return in_.fault() ? in_.fault() : out_.fault(); }

 private:
  void wake_if(std::uint32_t event) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::atomic_ref waiting(*other_waiting_);
    if ((waiting.load(std::memory_order_relaxed) & event) != 0) {
      waiting.exchange(0, std::memory_order_acq_rel);
      link_.wake();
    }
  }

  Mapping mapping_;
  Link link_;
  Producer out_;
  Consumer in_;
  OwnFrames own_;
  std::uint32_t* own_waiting_;
  std::uint32_t* other_waiting_;
};

}  // namespace catchment::shm
