#include "segment_room.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "catchment/common/cache_line.hpp"

namespace catchment::softswitch {

namespace {

/// Errors that the socket kept for us (the interface went down) come before the packet.
constexpr int kTries = 3;

ssize_t take(int socket, std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ssize_t got = -1;
  for (int tries = 0; got < 0 && tries < kTries; ++tries) {
    got = recvmsg(socket, &message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    }
  }
  return (message.msg_flags & MSG_TRUNC) != 0 ? -1 : got;
}

}  // namespace

SegmentRoom::SegmentRoom(int socket, std::size_t longest, std::size_t before)
    : socket_(socket),
      before_(before),
      // An odd number of lines: neighbours do not share their cache sets.
      stride_((((before + longest + kCacheLine - 1) / kCacheLine) | 1) * kCacheLine),
      memory_(std::make_unique_for_overwrite<std::uint8_t[]>(kFrames * stride_)) {}

std::span<const std::span<std::uint8_t>> SegmentRoom::split(const SuperPacket& packet,
                                                            std::span<const std::uint8_t> whole) {
  const std::uint8_t* from = whole.data() + packet.header_bytes();
  for (std::size_t i = 0; i < packet.segments(); ++i) {
    std::memcpy(frame(i) + packet.header_bytes(), from, packet.bytes_of(i));
    from += packet.bytes_of(i);
  }
  return finish(packet);
}

std::span<const std::span<std::uint8_t>> SegmentRoom::receive(const SuperPacket& packet,
                                                              std::size_t length,
                                                              std::span<const std::uint8_t> head) {
  FrameNote note;
  parts_.clear();
  parts_.push_back({&note, sizeof note});
  parts_.push_back({frame(0), packet.header_bytes() + packet.bytes_of(0)});
  for (std::size_t i = 1; i < packet.segments(); ++i) {
    parts_.push_back({frame(i) + packet.header_bytes(), packet.bytes_of(i)});
  }
  const ssize_t got = take(socket_, parts_);
  if (got == static_cast<ssize_t>(sizeof note + length) &&
      std::memcmp(frame(0), head.data(), packet.header_bytes()) == 0) {
    return finish(packet);
  }
  // Ring and queue are out of step, which no kernel lets them be: begin anew with an empty queue.
  while (got >= 0 && recv(socket_, &note, sizeof note, MSG_DONTWAIT | MSG_TRUNC) >= 0) {
  }
  return {};
}

void SegmentRoom::discard() const {
  FrameNote note;
  iovec part{&note, sizeof note};
  static_cast<void>(take(socket_, {&part, 1}));
}

std::span<const std::span<std::uint8_t>> SegmentRoom::finish(const SuperPacket& packet) {
  frames_.clear();
  for (std::size_t i = 0; i < packet.segments(); ++i) {
    frames_.emplace_back(frame(i), packet.finish(i, frame(i)));
  }
  used_ += packet.segments();
  return frames_;
}

}  // namespace catchment::softswitch
