#include "receive_ring.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "catchment/common/cache_line.hpp"

namespace catchment::softswitch {

namespace {

constexpr std::size_t kRingBytes = 8 << 20;
/// The room before each frame to put back a VLAN tag that the kernel took out.
constexpr std::size_t kVlanRoom = 4;
constexpr std::size_t kMacAddresses = 12;
/// The bytes of an entry before its frame: the kernel's header, the sender's address and padding.
constexpr std::size_t kEntryHead = TPACKET_ALIGN(TPACKET2_HDRLEN) + 2 * TPACKET_ALIGNMENT;
/// The room that aligns what UDP carries where a note stands before the frame, as without one.
constexpr std::size_t kNotedRoom = TPACKET_ALIGNMENT - sizeof(FrameNote);
static_assert(kNotedRoom >= kVlanRoom);

FrameNote note_before(const std::uint8_t* frame) {
  FrameNote note;
  std::memcpy(&note, frame - sizeof note, sizeof note);
  return note;
}

/// Puts a VLAN tag back that the kernel took out; there is room before the frame.
rt::InputFrame tagged(std::uint8_t* data, std::uint32_t length, std::uint32_t port,
                      std::uint32_t status, const tpacket2_hdr& header) {
  if ((status & TP_STATUS_VLAN_VALID) == 0 || length < kMacAddresses) {
    return {data, length, port};
  }
  const bool typed = (status & TP_STATUS_VLAN_TPID_VALID) != 0;
  const std::uint16_t tag[2] = {htons(typed ? header.tp_vlan_tpid : ETH_P_8021Q),
                                htons(header.tp_vlan_tci)};
  std::memmove(data - kVlanRoom, data, kMacAddresses);
  std::memcpy(data - kVlanRoom + kMacAddresses, tag, sizeof tag);
  return {data - kVlanRoom, static_cast<std::uint32_t>(length + kVlanRoom), port};
}

std::atomic_ref<std::uint32_t> status_of(std::uint8_t* entry) {
  return std::atomic_ref<std::uint32_t>(reinterpret_cast<tpacket2_hdr*>(entry)->tp_status);
}

}  // namespace

ReceiveRing::~ReceiveRing() {
  if (memory_ != nullptr) {
    munmap(memory_, bytes_);
  }
}

ReceiveRing::ReceiveRing(ReceiveRing&& other) noexcept { *this = std::move(other); }

ReceiveRing& ReceiveRing::operator=(ReceiveRing&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  longest_ = other.longest_;
  entry_bytes_ = other.entry_bytes_;
  per_block_ = other.per_block_;
  entries_ = other.entries_;
  next_ = other.next_;
  lent_ = other.lent_;
  unfinished_checksum_ = other.unfinished_checksum_;
  segments_ = std::move(other.segments_);
  last_super_packet_ = other.last_super_packet_.load();
  missed_ = other.missed_.load();
  return *this;
}

int ReceiveRing::open(int socket, std::size_t longest, bool noted) {
  longest_ = longest;
  const std::size_t before = noted ? kNotedRoom : kVlanRoom;
  std::size_t lines = (kEntryHead + before + longest + kCacheLine - 1) / kCacheLine;
  lines |= 1;  // odd: neighbours do not share their cache sets
  entry_bytes_ = lines * kCacheLine;
  per_block_ = kBlockBytes / entry_bytes_;
  if (per_block_ == 0) {
    return EMSGSIZE;
  }
  const int version = TPACKET_V2;
  const int room = static_cast<int>(before);
  tpacket_req request{};
  request.tp_block_size = kBlockBytes;
  request.tp_block_nr = kRingBytes / kBlockBytes;
  request.tp_frame_size = static_cast<unsigned>(entry_bytes_);
  request.tp_frame_nr = static_cast<unsigned>(request.tp_block_nr * per_block_);
  if (setsockopt(socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      setsockopt(socket, SOL_PACKET, PACKET_RESERVE, &room, sizeof room) != 0 ||
      setsockopt(socket, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0) {
    return errno;
  }
  void* mapped = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket, 0);
  if (mapped == MAP_FAILED) {
    return errno;
  }
  memory_ = static_cast<std::uint8_t*>(mapped);
  bytes_ = kRingBytes;
  entries_ = request.tp_frame_nr;
  if (noted) {
    segments_ = std::make_unique<SegmentRoom>(socket, longest, kVlanRoom);
  }
  return 0;
}

Received ReceiveRing::receive(std::uint32_t port, std::vector<rt::InputFrame>& frames) {
  for (; lent_ > 0; --lent_) {
    status_of(entry((next_ >= lent_ ? next_ : next_ + entries_) - lent_))
        .store(TP_STATUS_KERNEL, std::memory_order_release);
  }
  if (segments_ != nullptr) {
    segments_->clear();
  }
  Received out;
  while (out.frames + out.too_long < kBatch) {
    std::uint8_t* at = entry(next_);
    const std::uint32_t status = status_of(at).load(std::memory_order_acquire);
    if ((status & TP_STATUS_USER) == 0) {
      break;
    }
    const auto& header = *reinterpret_cast<const tpacket2_hdr*>(at);
    std::uint8_t* data = at + header.tp_mac;
    const FrameNote note = segments_ != nullptr ? note_before(data) : FrameNote{};
    next_ = next_ + 1 == entries_ ? 0 : next_ + 1;
    ++lent_;
    if (note.segmentation != FrameNote::kWhole) {
      receive_super_packet(at, note, port, frames, out);
      continue;
    }
    if (header.tp_snaplen < header.tp_len || header.tp_len > longest_) {
      ++out.too_long;
      if ((status & TP_STATUS_COPY) != 0) {
        segments_->discard();
      }
      continue;
    }
    if ((status & TP_STATUS_CSUMNOTREADY) != 0) {
      unfinished_checksum_ |= !finish_checksum({data, header.tp_len}, note);
    }
    frames.push_back(tagged(data, header.tp_len, port, status, header));
    ++out.frames;
  }
  return out;
}

void ReceiveRing::receive_super_packet(const std::uint8_t* entry, const FrameNote& note,
                                       std::uint32_t port, std::vector<rt::InputFrame>& frames,
                                       Received& out) {
  const auto& header = *reinterpret_cast<const tpacket2_hdr*>(entry);
  const std::span<const std::uint8_t> head(entry + header.tp_mac, header.tp_snaplen);
  const bool whole = header.tp_snaplen == header.tp_len;
  const bool queued = (header.tp_status & TP_STATUS_COPY) != 0;
  const auto packet = SuperPacket::read(head, header.tp_len, note, longest_);
  if (!packet) {
    ++out.too_long;
    if (queued) {
      segments_->discard();
    }
    return;
  }
  last_super_packet_.store(std::chrono::steady_clock::now().time_since_epoch().count(),
                           std::memory_order_relaxed);
  std::span<const std::span<std::uint8_t>> segments;
  if (whole) {
    segments = segments_->split(*packet, head);
  } else if (queued) {
    segments = segments_->receive(*packet, header.tp_len, head);
  }
  if (segments.empty()) {
    missed_ += packet->segments();
  }
  for (const std::span<std::uint8_t> frame : segments) {
    frames.push_back(tagged(frame.data(), static_cast<std::uint32_t>(frame.size()), port,
                            header.tp_status, header));
    ++out.frames;
  }
}

}  // namespace catchment::softswitch
