// One AF_PACKET socket: a ring in, batches out. Where the kernel can, UDP passes as super-packets,
// one trip through the kernel for many frames: those that come are split into the frames that would
// have come, and to a peer that sends them, frames are merged.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "port.hpp"
#include "receive_ring.hpp"
#include "send_batch.hpp"

namespace catchment::softswitch {

class PacketSocket {
 public:
  /// Opens a socket on an interface, promiscuous, deaf to what it sends itself, for frames of up to
  /// `max_frame` bytes. Needs CAP_NET_RAW.
  static Result<PacketSocket> open(const std::string& interface, std::size_t max_frame);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] int index() const { return index_; }
  /// Whether the interface, by its name, takes longer frames now than when it was opened.
  [[nodiscard]] bool outgrown(const std::string& interface) const;
  [[nodiscard]] ReceiveRing& ring() { return ring_; }

  /// Sends up to kBatch of the frames.
  Sent send(std::span<const rt::OutFrame> frames);
  /// Whether the kernel lets super-packets pass; any thread.
  [[nodiscard]] bool passes_super_packets() const { return noted_ && !batch_->refused(); }

  /// The error that the kernel left on the socket, and that a poll keeps reporting until then.
  int take_error();
  /// Frames that came while the socket's buffer was full, since the last call.
  [[nodiscard]] std::uint64_t take_missed() const;

 private:
  PacketSocket(FileDescriptor socket, ReceiveRing ring, int index, int mtu, bool noted)
      : socket_(std::move(socket)),
        ring_(std::move(ring)),
        batch_(std::make_unique<SendBatch>()),
        index_(index),
        mtu_(mtu),
        noted_(noted) {}
  /// Length up to which frames may be merged now, 0: none.
  [[nodiscard]] std::size_t longest_merged() const;

  FileDescriptor socket_;
  ReceiveRing ring_;
  std::unique_ptr<SendBatch> batch_;
  int index_;
  int mtu_;
  bool noted_;  // PACKET_VNET_HDR
};

}  // namespace catchment::softswitch
