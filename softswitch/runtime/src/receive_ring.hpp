// Frames of a packet socket in memory that the kernel shares with us (PACKET_RX_RING, TPACKET_V2):
// no system call and no copy of ours per frame. Super-packets, which are longer than an entry of
// the ring, wait in the socket's queue, and an entry says so; one system call takes one and splits
// it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "port.hpp"
#include "segment_room.hpp"

struct tpacket2_hdr;

namespace catchment::softswitch {

class ReceiveRing {
 public:
  ReceiveRing() = default;
  ~ReceiveRing();
  ReceiveRing(ReceiveRing&& other) noexcept;
  ReceiveRing& operator=(ReceiveRing&& other) noexcept;
  ReceiveRing(const ReceiveRing&) = delete;
  ReceiveRing& operator=(const ReceiveRing&) = delete;

  /// Gives the socket a ring for frames of up to `longest` bytes; before it is bound. Returns
  /// errno, 0 for none. `noted`: the socket has PACKET_VNET_HDR.
  int open(int socket, std::size_t longest, bool noted);
  [[nodiscard]] std::size_t longest() const { return longest_; }

  /// Gives the frames of the last call back to the kernel; then appends up to kBatch, as frames of
  /// `port`, which may be written to.
  Received receive(std::uint32_t port, std::vector<rt::InputFrame>& frames);
  /// Whether a sender left a checksum to an offload and the switch could not compute it either.
  [[nodiscard]] bool saw_unfinished_checksum() const { return unfinished_checksum_; }
  /// The time at which the last super-packet came; any thread may ask.
  [[nodiscard]] std::chrono::steady_clock::time_point last_super_packet() const {
    return std::chrono::steady_clock::time_point(
        std::chrono::steady_clock::duration(last_super_packet_.load(std::memory_order_relaxed)));
  }
  /// Frames of super-packets for which the kernel had no room, since the last call.
  [[nodiscard]] std::uint64_t take_missed() const { return missed_.exchange(0); }

 private:
  /// What is in an entry, besides a whole frame.
  void receive_super_packet(const std::uint8_t* entry, const FrameNote& note, std::uint32_t port,
                            std::vector<rt::InputFrame>& frames, Received& out);
  [[nodiscard]] std::uint8_t* entry(std::size_t index) const {
    return memory_ + index / per_block_ * kBlockBytes + index % per_block_ * entry_bytes_;
  }

  static constexpr std::size_t kBlockBytes = 64 << 10;
  std::uint8_t* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t longest_ = 0;
  std::size_t entry_bytes_ = 0;
  std::size_t per_block_ = 1;
  std::size_t entries_ = 0;
  std::size_t next_ = 0;  // that the kernel fills
  std::size_t lent_ = 0;  // entries before it that we still use
  bool unfinished_checksum_ = false;
  std::unique_ptr<SegmentRoom> segments_;  // if the kernel tells us enough
  /// The clock's count when the last super-packet came; other threads read it, too.
  std::atomic<std::chrono::steady_clock::rep> last_super_packet_{0};
  mutable std::atomic<std::uint64_t> missed_{0};
};

}  // namespace catchment::softswitch
