// Frames on their way into a packet socket: what one sendmmsg() takes. Consecutive UDP datagrams of
// one flow and one size can go as one super-packet, where the socket has notes (PACKET_VNET_HDR).
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "catchment/softswitch/rt/engine.hpp"
#include "port.hpp"
#include "super_packet.hpp"

namespace catchment::softswitch {

class SendBatch {
 public:
  /// Takes as many of the frames as make one batch, up to kBatch. `noted`: the socket has
  /// PACKET_VNET_HDR; `longest`: length of the longest frame that may be merged, 0: none may.
  void fill(std::span<const rt::OutFrame> frames, bool noted, std::size_t longest);

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] mmsghdr* message(std::size_t index) { return &messages_[index]; }
  /// Frames in a message.
  [[nodiscard]] std::size_t frames_of(std::size_t index) const { return frames_[index]; }

  /// The kernel refused a super-packet. Any thread may ask.
  void refuse() { refused_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kHeaderBytes = 42;  // Ethernet, IPv4 without options, UDP
  struct Head {
    FrameNote note;
    std::uint8_t bytes[kHeaderBytes];
  };
  static_assert(sizeof(Head) == sizeof(FrameNote) + kHeaderBytes);

  void add(std::span<const rt::OutFrame> frames, bool noted);
  void merge(std::span<const rt::OutFrame> frames, Head& head);

  std::array<mmsghdr, kBatch> messages_{};
  std::array<std::uint16_t, kBatch> frames_{};
  std::array<iovec, 2 * kBatch> parts_{};
  std::array<Head, kBatch> heads_{};
  std::size_t count_ = 0;
  std::size_t used_ = 0;  // parts
  std::atomic<bool> refused_{false};
};

}  // namespace catchment::softswitch
