// A connected UDP socket with batched system calls.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "file_descriptor.hpp"
#include "port.hpp"
#include "udp_address.hpp"

namespace catchment::host {

class UdpPort final : public Port {
 public:
  // frame_bytes: the longest frame; window: frames that may arrive while nobody reads.
  // Throws std::system_error.
  UdpPort(const UdpAddress& local, const UdpAddress& peer, std::size_t frame_bytes,
          std::size_t window);

  std::uint8_t* stage() override;
  void commit(std::size_t bytes) override;
  bool flush() override;
  std::span<const std::span<const std::uint8_t>> receive() override;
  bool more() const override { return more_; }
  // A UDP payload that fits the MTU without fragments.
  std::size_t path_bytes() const override;
  int descriptor() const override { return socket_.get(); }
  std::uint64_t errors() const override { return errors_; }
  int last_error() const override { return last_error_; }
  std::uint64_t foreign() const override { return foreign_; }

  UdpAddress local() const;

 private:
  static constexpr std::size_t kBatch = 64;

  void note(int error);

  FileDescriptor socket_;
  sockaddr_in peer_{};
  std::size_t stride_;

  std::vector<std::uint8_t> out_;
  std::array<iovec, kBatch> out_parts_{};
  std::array<mmsghdr, kBatch> out_messages_{};
  std::size_t staged_ = 0;
  std::size_t sent_ = 0;

  std::vector<std::uint8_t> in_;
  std::array<iovec, kBatch> in_parts_{};
  std::array<mmsghdr, kBatch> in_messages_{};
  std::array<sockaddr_in, kBatch> in_sources_{};
  std::array<std::span<const std::uint8_t>, kBatch> in_frames_{};
  bool more_ = false;

  std::uint64_t errors_ = 0;
  int last_error_ = 0;
  std::uint64_t foreign_ = 0;
};

}  // namespace catchment::host
