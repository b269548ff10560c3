// AF_PACKET as cheap as it gets, for the bare forwarder and the load generator.
#pragma once

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace catchment::bench {

inline constexpr std::size_t kBatch = 64;
inline constexpr std::size_t kFrameRoom =
    9728 + 64;  // an odd number of cache lines: no two frames share their sets

inline double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    parts.push_back(part);
  }
  return parts;
}

/// A non-blocking raw socket on an interface, deaf to what it sends itself. Throws runtime_error.
class RawSocket {
 public:
  explicit RawSocket(const std::string& interface) {
    fd_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
    set(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
    set(SOL_PACKET, PACKET_QDISC_BYPASS, 1);
    for (const int name : {SO_RCVBUF, SO_SNDBUF, SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
      set(SOL_SOCKET, name, 16 << 20);
    }
    if (fd_ < 0 || address.sll_ifindex == 0 ||
        ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error(interface + ": " + std::strerror(errno) + " (root is needed)");
    }
  }
  ~RawSocket() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  RawSocket& operator=(RawSocket&&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  void set(int level, int name, int value) const {
    static_cast<void>(setsockopt(fd_, level, name, &value, sizeof value));
  }
  int fd_ = -1;
};

/// Room for a batch of frames.
class Batch {
 public:
  Batch() : bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(kBatch * kFrameRoom)) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      vectors_[i] = {bytes_.get() + i * kFrameRoom, kFrameRoom};
      messages_[i].msg_hdr.msg_iov = &vectors_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  [[nodiscard]] std::uint8_t* data(std::size_t i) const { return bytes_.get() + i * kFrameRoom; }
  [[nodiscard]] std::size_t length(std::size_t i) const { return vectors_[i].iov_len; }
  void set_length(std::size_t i, std::size_t length) { vectors_[i].iov_len = length; }

  /// Frames received, their lengths set.
  std::size_t receive(int fd) {
    for (iovec& vector : vectors_) {
      vector.iov_len = kFrameRoom;
    }
    const int count = ::recvmmsg(fd, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) {
      vectors_[static_cast<std::size_t>(i)].iov_len =
          messages_[static_cast<std::size_t>(i)].msg_len;
    }
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }
  /// Sends the first `count`; gives up on what the device has no room for. Returns those sent.
  std::size_t send(int fd, std::size_t count) {
    std::size_t sent = 0;
    while (sent < count) {
      const int result = ::sendmmsg(fd, messages_.data() + sent,
                                    static_cast<unsigned>(count - sent), MSG_DONTWAIT);
      if (result <= 0 && errno != EINTR) {
        break;
      }
      sent += static_cast<std::size_t>(result > 0 ? result : 0);
    }
    return sent;
  }

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::array<iovec, kBatch> vectors_{};
  std::array<mmsghdr, kBatch> messages_{};
};

}  // namespace catchment::bench
