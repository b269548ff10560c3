#include "send_batch.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "catchment/common/internet_checksum.hpp"

namespace catchment::softswitch {

namespace {

/// The most that every kernel with UDP_SEGMENT takes.
constexpr std::size_t kMostMerged = 64;
constexpr std::size_t kMostBytes = 65535;
constexpr std::size_t kNetwork = 14;
constexpr std::size_t kTransport = 34;
constexpr std::size_t kPayload = 42;
constexpr std::size_t kPorts = 4;

constexpr FrameNote kPlain{};

/// Whether a frame could be a segment: UDP over plain IPv4 over Ethernet, with payload and right
/// checksums, since segments always have those.
bool mergeable(const rt::OutFrame& frame) {
  const std::span<const std::uint8_t> bytes(frame.data, frame.length);
  const auto udp = UdpFrame::find(bytes, bytes.size());
  if (!udp || udp->network != kNetwork || udp->payload != kPayload || udp->v6 ||
      bytes.size() == kPayload || !udp->ip_checksum_right(frame.data)) {
    return false;
  }
  const std::size_t udp_bytes = bytes.size() - kTransport;
  return load16(frame.data + kTransport + kUdpChecksum) == 0 ||
         fold(ones_sum(frame.data + kTransport, udp_bytes,
                       udp->pseudo_sum(frame.data, udp_bytes))) == 0xFFFF;
}

/// Whether `next` may follow `first` as segment number `index`.
bool follows(const std::uint8_t* first, const std::uint8_t* next, std::size_t index) {
  const auto same = [&](std::size_t from, std::size_t bytes) {
    return std::memcmp(first + from, next + from, bytes) == 0;
  };
  const bool numbered =
      load16(next + kNetwork + kIpId) == ((load16(first + kNetwork + kIpId) + index) & 0xFFFFU);
  // The identification of what must not be fragmented means nothing (RFC 6864).
  const bool atomic = (load16(first + kNetwork + kIpFragment) & kDontFragment) != 0;
  const auto unchecked = [](const std::uint8_t* frame) {
    return load16(frame + kTransport + kUdpChecksum) == 0;
  };
  return same(0, kNetwork + kIpLength) && same(kNetwork + kIpFragment, kIpChecksum - kIpFragment) &&
         same(kNetwork + kIpAddresses, kTransport + kPorts - kNetwork - kIpAddresses) &&
         (numbered || atomic) && unchecked(first) == unchecked(next);
}

/// How many frames from the front of the list make one super-packet, at least one.
std::size_t run_of(std::span<const rt::OutFrame> frames, std::size_t longest) {
  const rt::OutFrame& first = frames.front();
  if (frames.size() < 2 || first.length > longest || frames[1].length > first.length ||
      !mergeable(first)) {
    return 1;
  }
  std::size_t bytes = first.length;
  std::size_t count = 1;
  for (bool full = true; full && count < std::min(frames.size(), kMostMerged); ++count) {
    const rt::OutFrame& next = frames[count];
    if (next.length > first.length || bytes + next.length - kPayload > kMostBytes ||
        !mergeable(next) || !follows(first.data, next.data, count)) {
      break;
    }
    bytes += next.length - kPayload;
    full = next.length == first.length;
  }
  return count;
}

}  // namespace

void SendBatch::fill(std::span<const rt::OutFrame> frames, bool noted, std::size_t longest) {
  count_ = used_ = 0;
  frames = frames.first(std::min(frames.size(), kBatch));
  while (!frames.empty()) {
    const std::size_t run = noted && longest != 0 ? run_of(frames, longest) : 1;
    add(frames.first(run), noted);
    frames = frames.subspan(run);
  }
}

void SendBatch::add(std::span<const rt::OutFrame> frames, bool noted) {
  msghdr& message = messages_[count_].msg_hdr;
  const std::size_t begin = used_;
  message.msg_iov = &parts_[begin];
  if (frames.size() > 1) {
    merge(frames, heads_[count_]);
  } else {
    if (noted) {
      // The kernel only reads what it sends.
      parts_[used_++] = {const_cast<FrameNote*>(&kPlain), sizeof kPlain};
    }
    parts_[used_++] = {frames[0].data, frames[0].length};
  }
  message.msg_iovlen = used_ - begin;
  frames_[count_++] = static_cast<std::uint16_t>(frames.size());
}

void SendBatch::merge(std::span<const rt::OutFrame> frames, Head& head) {
  std::size_t payload = 0;
  parts_[used_++] = {&head, sizeof head};
  for (const rt::OutFrame& frame : frames) {
    parts_[used_++] = {frame.data + kPayload, frame.length - kPayload};
    payload += frame.length - kPayload;
  }
  head.note = {.flags = FrameNote::kNeedsChecksum,
               .segmentation = FrameNote::kUdpSegments,
               .header_bytes = kPayload,
               .segment_bytes = static_cast<std::uint16_t>(frames[0].length - kPayload),
               .checksum_start = kTransport,
               .checksum_offset = kUdpChecksum};
  std::memcpy(head.bytes, frames[0].data, sizeof head.bytes);
  const UdpFrame udp{.network = kNetwork, .transport = kTransport, .payload = kPayload};
  udp.set_lengths(head.bytes, payload);
  const std::uint16_t sum = fold(udp.pseudo_sum(head.bytes, kUdpBytes + payload));
  std::memcpy(head.bytes + kTransport + kUdpChecksum, &sum, sizeof sum);
}

}  // namespace catchment::softswitch
