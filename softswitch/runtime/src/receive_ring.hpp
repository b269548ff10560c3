// Frames of a packet socket in memory that the kernel shares with us (PACKET_RX_RING, TPACKET_V2):
// no system call and no copy of ours per frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "port.hpp"

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
  /// errno, 0 for none.
  int open(int socket, std::size_t longest);
  [[nodiscard]] std::size_t longest() const { return longest_; }

  /// Gives the frames of the last call back to the kernel; then appends up to kBatch, as frames of
  /// `port`, which may be written to.
  Received receive(std::uint32_t port, std::vector<rt::InputFrame>& frames);
  /// Whether a sender left its checksums to an offload that nobody here does.
  [[nodiscard]] bool saw_unfinished_checksum() const { return unfinished_checksum_; }

 private:
  [[nodiscard]] std::uint8_t* slot(std::size_t index) const {
    return memory_ + index / per_block_ * kBlockBytes + index % per_block_ * slot_bytes_;
  }

  static constexpr std::size_t kBlockBytes = 64 << 10;
  std::uint8_t* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t longest_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t per_block_ = 1;
  std::size_t slots_ = 0;
  std::size_t next_ = 0;  // that the kernel fills
  std::size_t lent_ = 0;  // slots before it that we still use
  bool unfinished_checksum_ = false;
};

}  // namespace catchment::softswitch
