// A connected UDP socket with batched system calls. Where the kernel can (Linux 4.18, and for each
// device 6.11 or a checksum offload), frames of one size that leave together are one datagram for
// it until the device, or a switch on this machine, splits it (UDP_SEGMENT), and frames that come
// merged are taken together (UDP_GRO).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catchment/shm/fork_guard.hpp>
#include <memory>
#include <vector>

#include "catchment/common/file_descriptor.hpp"
#include "port.hpp"
#include "udp_address.hpp"

namespace catchment::host {

class UdpPort final : public Port {
 public:
  // frame_bytes: the longest frame; window: frames that may arrive while no thread reads.
  // Throws std::system_error.
  UdpPort(const UdpAddress& local, const UdpAddress& peer, std::size_t frame_bytes,
          std::size_t window);

  std::uint8_t* stage() override;
  using Port::commit;
  void commit(std::size_t bytes, std::span<const std::uint8_t> rest) override;
  bool commit_in_place(std::span<std::uint8_t> frame) override;
  bool flush() override;
  void discard() override { staged_ = sent_ = 0; }
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
  // Received at once when merged frames come: as many frames as usual.
  static constexpr std::size_t kMergedBatch = 4;
  // The longest datagram, merged or not, and an odd number of cache lines.
  static constexpr std::size_t kRoomBytes = 65536 + 4160;

  // How a message to the kernel says the size of its segments.
  union SegmentSize {
    cmsghdr header;
    std::uint8_t bytes[CMSG_SPACE(sizeof(std::uint16_t))];
  };
  union MergedSize {
    cmsghdr header;
    std::uint8_t bytes[CMSG_SPACE(sizeof(int))];
  };

  std::uint8_t* room(std::size_t message) { return &in_[message * kRoomBytes]; }
  // Frames from `first` on that can leave as one message.
  std::size_t run_from(std::size_t first) const;
  // Messages for the frames that are staged and not sent, all of them plain or all merged; their
  // number.
  std::size_t make_messages();
  // Merged datagrams need a checksum, ours have none.
  void set_checksums(bool on);
  void note(int error);

  FileDescriptor socket_;
  shm::PrivateDescriptor own_socket_;
  sockaddr_in peer_{};
  std::size_t stride_;

  std::vector<std::uint8_t> out_;
  std::array<iovec, kBatch> out_parts_{};
  std::array<mmsghdr, kBatch> out_messages_{};
  std::array<SegmentSize, kBatch> out_sizes_{};
  std::size_t staged_ = 0;
  std::size_t sent_ = 0;
  bool merges_ = true;  // the kernel has not refused yet
  bool checksums_ = false;

  std::unique_ptr<std::uint8_t[]> in_;  // touched as it is used
  std::array<iovec, kBatch> in_parts_{};
  std::array<mmsghdr, kBatch> in_messages_{};
  std::array<sockaddr_in, kBatch> in_sources_{};
  std::array<MergedSize, kBatch> in_sizes_{};
  std::vector<std::span<const std::uint8_t>> in_frames_;
  std::size_t in_batch_ = kBatch;
  bool more_ = false;

  std::uint64_t errors_ = 0;
  int last_error_ = 0;
  std::uint64_t foreign_ = 0;
};

}  // namespace catchment::host
