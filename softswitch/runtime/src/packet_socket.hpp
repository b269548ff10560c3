// One AF_PACKET socket: batches in, batches out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "descriptor.hpp"
#include "port.hpp"

namespace catchment::softswitch {

/// Where a batch of frames is received.
class ReceiveBatch {
 public:
  explicit ReceiveBatch(std::size_t max_frame);
  ~ReceiveBatch();
  ReceiveBatch(const ReceiveBatch&) = delete;
  ReceiveBatch& operator=(const ReceiveBatch&) = delete;

 private:
  friend class PacketSocket;
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

class PacketSocket {
 public:
  /// Opens a socket on an interface, promiscuous, deaf to what it sends itself. Needs CAP_NET_RAW.
  static Result<PacketSocket> open(const std::string& interface);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] int index() const { return index_; }

  /// Appends up to kBatch frames, as frames of `port`, in `batch` until the next call.
  Received receive(ReceiveBatch& batch, std::uint32_t port, std::vector<rt::InputFrame>& frames);
  /// Up to kBatch of the frames.
  Sent send(const rt::OutFrame* frames, std::size_t count);

  /// Whether a sender left its checksums to an offload that nobody here does.
  [[nodiscard]] bool saw_unfinished_checksum() const { return unfinished_checksum_; }
  /// Frames that came while the socket's buffer was full, since the last call.
  [[nodiscard]] std::uint64_t take_missed() const;

 private:
  PacketSocket(Descriptor socket, int index) : socket_(std::move(socket)), index_(index) {}
  Descriptor socket_;
  int index_;
  bool unfinished_checksum_ = false;
};

}  // namespace catchment::softswitch
