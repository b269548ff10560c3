// One AF_PACKET socket: a ring in, batches out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "descriptor.hpp"
#include "port.hpp"
#include "receive_ring.hpp"

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

  /// Up to kBatch of the frames.
  Sent send(const rt::OutFrame* frames, std::size_t count);

  /// The error that the kernel left on the socket, and that a poll keeps reporting until then.
  int take_error();
  /// Frames that came while the socket's buffer was full, since the last call.
  [[nodiscard]] std::uint64_t take_missed() const;

 private:
  PacketSocket(Descriptor socket, ReceiveRing ring, int index, int mtu)
      : socket_(std::move(socket)), ring_(std::move(ring)), index_(index), mtu_(mtu) {}
  Descriptor socket_;
  ReceiveRing ring_;
  int index_;
  int mtu_;
};

}  // namespace catchment::softswitch
