#include "udp_port.hpp"

#include <arpa/inet.h>
#include <netinet/ip.h>

#include <algorithm>
#include <cstring>

namespace catchment::host {
namespace {

constexpr std::size_t kIpUdpBytes = 28;
// What the kernel charges a small datagram for beside its bytes.
constexpr std::size_t kBufferOverhead = 1280;

[[noreturn]] void raise(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in resolved(const UdpAddress& address) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(address.port);
  if (inet_pton(AF_INET, address.host.c_str(), &result.sin_addr) != 1) {
    errno = EINVAL;
    raise("inet_pton");
  }
  return result;
}

void set_option(int socket, int level, int option, int value) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) raise("setsockopt");
}

// Beyond the system's limit if we may, else as much as it gives.
void set_buffer(int socket, int forced, int plain, std::size_t bytes) {
  const int value = static_cast<int>(std::min<std::size_t>(bytes, 1U << 30));
  if (setsockopt(socket, SOL_SOCKET, forced, &value, sizeof value) != 0) {
    set_option(socket, SOL_SOCKET, plain, value);
  }
}

}  // namespace

UdpPort::UdpPort(const UdpAddress& local, const UdpAddress& peer, std::size_t frame_bytes,
                 std::size_t window)
    : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"),
      peer_(resolved(peer)),
      stride_(frame_bytes + 1),  // a frame that is too long has a length that none of ours has
      out_(kBatch * stride_),
      in_(kBatch * stride_) {
  const int fd = socket_.get();
  const std::size_t buffer =
      std::max<std::size_t>(1U << 20, 2 * window * (frame_bytes + kBufferOverhead));
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, buffer);
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, buffer);
  set_option(fd, SOL_SOCKET, SO_NO_CHECK, 1);  // the lanes change in flight
  set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  const sockaddr_in own = resolved(local);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) raise("bind");
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer_), sizeof peer_) != 0) raise("connect");

  for (std::size_t i = 0; i < kBatch; ++i) {
    out_parts_[i].iov_base = &out_[i * stride_];
    out_messages_[i].msg_hdr.msg_iov = &out_parts_[i];
    out_messages_[i].msg_hdr.msg_iovlen = 1;
    in_parts_[i] = {&in_[i * stride_], stride_};
    in_messages_[i].msg_hdr.msg_iov = &in_parts_[i];
    in_messages_[i].msg_hdr.msg_iovlen = 1;
    in_messages_[i].msg_hdr.msg_name = &in_sources_[i];
  }
}

std::uint8_t* UdpPort::stage() {
  if (staged_ == kBatch && !flush()) return nullptr;
  return &out_[staged_ * stride_];
}

void UdpPort::commit(std::size_t bytes) { out_parts_[staged_++].iov_len = bytes; }

bool UdpPort::flush() {
  while (sent_ != staged_) {
    const int count =
        sendmmsg(socket_.get(), &out_messages_[sent_], static_cast<unsigned>(staged_ - sent_), 0);
    if (count > 0) {
      sent_ += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno == EINTR) continue;
    const int error = errno;
    note(error);
    // A pending ICMP error is reported in place of a send: try that frame again.  Any other error
    // loses the frame, and the protocol repairs that.
    if (error != ECONNREFUSED) ++sent_;
  }
  staged_ = sent_ = 0;
  return true;
}

std::span<const std::span<const std::uint8_t>> UdpPort::receive() {
  for (auto& message : in_messages_) message.msg_hdr.msg_namelen = sizeof(sockaddr_in);
  const int count = recvmmsg(socket_.get(), in_messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (count <= 0) {
    more_ = false;
    if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) note(errno);
    return {};
  }
  more_ = static_cast<std::size_t>(count) == kBatch;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const sockaddr_in& source = in_sources_[i];
    if (source.sin_addr.s_addr != peer_.sin_addr.s_addr || source.sin_port != peer_.sin_port) {
      ++foreign_;
    } else {
      in_frames_[kept++] = {&in_[i * stride_], in_messages_[i].msg_len};
    }
  }
  return {in_frames_.data(), kept};
}

void UdpPort::note(int error) {
  ++errors_;
  last_error_ = error;
}

UdpAddress UdpPort::local() const {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    raise("getsockname");
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &own.sin_addr, text.data(), text.size());
  return {text.data(), ntohs(own.sin_port)};
}

std::size_t UdpPort::path_bytes() const {
  int mtu = 0;
  socklen_t size = sizeof mtu;
  if (getsockopt(socket_.get(), IPPROTO_IP, IP_MTU, &mtu, &size) != 0) raise("getsockopt");
  return static_cast<std::size_t>(mtu) - kIpUdpBytes;
}

}  // namespace catchment::host
