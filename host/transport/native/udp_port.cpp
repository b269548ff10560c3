#include "udp_port.hpp"

#include <netinet/ip.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

namespace catchment::host {
namespace {

constexpr std::size_t kIpUdpBytes = 28;
// What the kernel charges a small datagram for beside its bytes.
constexpr std::size_t kBufferOverhead = 1280;
// One message: what every kernel takes, and what a datagram holds.
constexpr std::size_t kMostSegments = 64;
constexpr std::size_t kMostBytes = 65535 - kIpUdpBytes;

[[noreturn]] void raise(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void set_option(int socket, int level, int option, int value) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) raise("setsockopt");
}

// The size of the segments of a datagram that the kernel merged, 0: it is a single one.
std::size_t segment_bytes(const msghdr& message) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != IPPROTO_UDP || header->cmsg_type != UDP_GRO) {
    return 0;
  }
  int size = 0;
  std::memcpy(&size, CMSG_DATA(header), sizeof size);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
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
      own_socket_(socket_.get()),
      peer_(resolved(peer)),
      stride_(frame_bytes + 1),  // a frame that is too long has a length that none of ours has
      out_(kBatch * stride_),
      in_(std::make_unique_for_overwrite<std::uint8_t[]>(kBatch * kRoomBytes)) {
  const int fd = socket_.get();
  const std::size_t buffer =
      std::max<std::size_t>(1U << 20, 2 * window * (frame_bytes + kBufferOverhead));
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, buffer);
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, buffer);
  set_option(fd, SOL_SOCKET, SO_NO_CHECK, 1);  // the lanes change in flight
  const int merged = 1;
  merges_ = setsockopt(fd, IPPROTO_UDP, UDP_GRO, &merged, sizeof merged) == 0;
  set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  const sockaddr_in own = resolved(local);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) raise("bind");
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer_), sizeof peer_) != 0) raise("connect");

  for (std::size_t i = 0; i < kBatch; ++i) {
    in_parts_[i] = {room(i), merges_ ? kRoomBytes : stride_};
    msghdr& message = in_messages_[i].msg_hdr;
    message.msg_iov = &in_parts_[i];
    message.msg_iovlen = 1;
    message.msg_name = &in_sources_[i];
    message.msg_control = &in_sizes_[i];
  }
}

std::uint8_t* UdpPort::stage() {
  if (staged_ == kBatch && !flush()) return nullptr;
  return &out_[staged_ * stride_];
}

void UdpPort::commit(std::size_t bytes, std::span<const std::uint8_t> rest) {
  std::uint8_t* const frame = &out_[staged_ * stride_];
  std::ranges::copy(rest, frame + bytes);
  out_parts_[staged_++] = {frame, bytes + rest.size()};
}

bool UdpPort::commit_in_place(std::span<std::uint8_t> frame) {
  out_parts_[staged_++] = {frame.data(), frame.size()};
  return false;
}

bool UdpPort::flush() {
  while (sent_ != staged_) {
    const std::size_t messages = make_messages();
    const int count =
        sendmmsg(socket_.get(), out_messages_.data(), static_cast<unsigned>(messages), 0);
    if (count > 0) {
      for (int i = 0; i < count; ++i) sent_ += out_messages_[i].msg_hdr.msg_iovlen;
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno == EINTR) continue;
    const int error = errno;
    if (out_messages_[0].msg_hdr.msg_iovlen > 1 && (error == EIO || error == EINVAL)) {
      merges_ = false;  // not by this kernel over this device
      continue;
    }
    note(error);
    // A pending ICMP error is reported in place of a send: try that frame again.  Any other error
    // loses the frame, and the protocol repairs that.
    if (error != ECONNREFUSED) sent_ += out_messages_[0].msg_hdr.msg_iovlen;
  }
  staged_ = sent_ = 0;
  return true;
}

std::size_t UdpPort::run_from(std::size_t first) const {
  const std::size_t size = out_parts_[first].iov_len;
  std::size_t bytes = size;
  std::size_t end = first + 1;
  // Only the last one may be shorter.
  while (end != staged_ && end - first < kMostSegments && out_parts_[end - 1].iov_len == size &&
         out_parts_[end].iov_len <= size && bytes + out_parts_[end].iov_len <= kMostBytes) {
    bytes += out_parts_[end++].iov_len;
  }
  // Two that follow make one message, one that is left over a system call.
  return end - first > 2 && end + 1 == staged_ ? end - first - 1 : end - first;
}

std::size_t UdpPort::make_messages() {
  std::size_t count = 0;
  bool merged = false;
  for (std::size_t at = sent_; at != staged_; ++count) {
    const std::size_t run = merges_ ? run_from(at) : 1;
    if (count == 0) {
      merged = run > 1;
    } else if (merged != (run > 1)) {
      break;
    }
    msghdr& message = out_messages_[count].msg_hdr;
    message.msg_iov = &out_parts_[at];
    message.msg_iovlen = run;
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    if (merged) {
      SegmentSize& size = out_sizes_[count];
      message.msg_control = &size;
      message.msg_controllen = sizeof size;
      size.header.cmsg_level = IPPROTO_UDP;
      size.header.cmsg_type = UDP_SEGMENT;
      size.header.cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
      const auto bytes = static_cast<std::uint16_t>(out_parts_[at].iov_len);
      std::memcpy(CMSG_DATA(&size.header), &bytes, sizeof bytes);
    }
    at += run;
  }
  set_checksums(merged);
  return count;
}

void UdpPort::set_checksums(bool on) {
  if (checksums_ == on) return;
  const int none = on ? 0 : 1;
  if (setsockopt(socket_.get(), SOL_SOCKET, SO_NO_CHECK, &none, sizeof none) == 0) checksums_ = on;
}

std::span<const std::span<const std::uint8_t>> UdpPort::receive() {
  for (std::size_t i = 0; i < in_batch_; ++i) {
    in_messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_in);
    in_messages_[i].msg_hdr.msg_controllen = sizeof(MergedSize);
  }
  const int count = recvmmsg(socket_.get(), in_messages_.data(), static_cast<unsigned>(in_batch_),
                             MSG_DONTWAIT, nullptr);
  in_frames_.clear();
  if (count <= 0) {
    more_ = false;
    if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) note(errno);
    return {};
  }
  more_ = static_cast<std::size_t>(count) == in_batch_;
  in_batch_ = kBatch;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const sockaddr_in& source = in_sources_[i];
    std::span<const std::uint8_t> left(room(i), in_messages_[i].msg_len);
    std::size_t size = segment_bytes(in_messages_[i].msg_hdr);
    if (size != 0) {
      in_batch_ = kMergedBatch;
    } else {
      size = left.size();
    }
    if (source.sin_addr.s_addr != peer_.sin_addr.s_addr || source.sin_port != peer_.sin_port) {
      foreign_ += size == 0 ? 1 : (left.size() + size - 1) / size;
      continue;
    }
    do {
      const std::size_t bytes = std::min(size, left.size());
      in_frames_.push_back(left.first(bytes));
      left = left.subspan(bytes);
    } while (!left.empty());
  }
  return in_frames_;
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
