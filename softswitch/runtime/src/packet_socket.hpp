// One AF_PACKET socket: batches in, batches out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"

namespace catchment::softswitch {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

inline constexpr std::size_t kBatch = 64;

/// Where a batch of frames is received. One serves all sockets of a thread.
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

/// What one call received besides frames.
struct Received {
  std::size_t frames = 0;
  std::size_t too_long = 0;
  bool unfinished_checksums =
      false;      // the sender leaves its checksums to an offload that nobody here does
  int error = 0;  // errno, EAGAIN left out
};

/// What one call sent.
struct Sent {
  std::size_t frames = 0;  // taken off the list, sent or refused
  std::size_t delivered = 0;
  std::uint64_t bytes = 0;   // of those delivered
  std::size_t refused = 0;   // the device had no room
  std::size_t too_long = 0;  // above the device's MTU
  bool full = false;         // try again when writable
  int error = 0;
};

class PacketSocket {
 public:
  /// Opens a socket on an interface, promiscuous, deaf to what it sends itself. Needs CAP_NET_RAW.
  static Result<PacketSocket> open(const std::string& interface);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] int index() const { return index_; }

  /// Up to kBatch frames, as frames of `port`, in `batch` until the next call.
  Received receive(ReceiveBatch& batch, std::uint32_t port, std::vector<rt::InputFrame>& frames);
  /// Up to kBatch of the frames.
  Sent send(const rt::OutFrame* frames, std::size_t count);

 private:
  PacketSocket(Descriptor socket, int index) : socket_(std::move(socket)), index_(index) {}
  Descriptor socket_;
  int index_;
};

}  // namespace catchment::softswitch
