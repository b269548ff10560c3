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

namespace catchment::softswitch {

namespace {

constexpr std::size_t kRingBytes = 8 << 20;
constexpr std::size_t kCacheLine = 64;
/// Before each frame: room to put back a VLAN tag that the kernel took out.
constexpr std::size_t kVlanRoom = 4;
constexpr std::size_t kMacAddresses = 12;
/// Before the frame, the slot holds the kernel's header, the sender's address and padding.
constexpr std::size_t kSlotHead = TPACKET_ALIGN(TPACKET2_HDRLEN) + 2 * TPACKET_ALIGNMENT;

std::atomic_ref<std::uint32_t> status_of(std::uint8_t* slot) {
  return std::atomic_ref<std::uint32_t>(reinterpret_cast<tpacket2_hdr*>(slot)->tp_status);
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
  slot_bytes_ = other.slot_bytes_;
  per_block_ = other.per_block_;
  slots_ = other.slots_;
  next_ = other.next_;
  lent_ = other.lent_;
  unfinished_checksum_ = other.unfinished_checksum_;
  return *this;
}

int ReceiveRing::open(int socket, std::size_t longest) {
  longest_ = longest;
  std::size_t lines = (kSlotHead + kVlanRoom + longest + kCacheLine - 1) / kCacheLine;
  lines |= 1;  // odd: neighbours do not share their cache sets
  slot_bytes_ = lines * kCacheLine;
  per_block_ = kBlockBytes / slot_bytes_;
  if (per_block_ == 0) {
    return EMSGSIZE;
  }
  const int version = TPACKET_V2;
  const int room = kVlanRoom;
  tpacket_req request{};
  request.tp_block_size = kBlockBytes;
  request.tp_block_nr = kRingBytes / kBlockBytes;
  request.tp_frame_size = static_cast<unsigned>(slot_bytes_);
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
  slots_ = request.tp_frame_nr;
  return 0;
}

Received ReceiveRing::receive(std::uint32_t port, std::vector<rt::InputFrame>& frames) {
  for (; lent_ > 0; --lent_) {
    status_of(slot((next_ >= lent_ ? next_ : next_ + slots_) - lent_))
        .store(TP_STATUS_KERNEL, std::memory_order_release);
  }
  Received out;
  while (out.frames + out.too_long < kBatch) {
    std::uint8_t* at = slot(next_);
    const std::uint32_t status = status_of(at).load(std::memory_order_acquire);
    if ((status & TP_STATUS_USER) == 0) {
      break;
    }
    const auto& header = *reinterpret_cast<const tpacket2_hdr*>(at);
    next_ = next_ + 1 == slots_ ? 0 : next_ + 1;
    ++lent_;
    unfinished_checksum_ |= (status & TP_STATUS_CSUMNOTREADY) != 0;
    if (header.tp_snaplen < header.tp_len || header.tp_len > longest_) {
      ++out.too_long;
      continue;
    }
    std::uint8_t* data = at + header.tp_mac;
    std::uint32_t length = header.tp_len;
    if ((status & TP_STATUS_VLAN_VALID) != 0 && length >= kMacAddresses) {
      const bool typed = (status & TP_STATUS_VLAN_TPID_VALID) != 0;
      const std::uint16_t tag[2] = {htons(typed ? header.tp_vlan_tpid : ETH_P_8021Q),
                                    htons(header.tp_vlan_tci)};
      std::memmove(data - kVlanRoom, data, kMacAddresses);
      std::memcpy(data - kVlanRoom + kMacAddresses, tag, sizeof tag);
      data -= kVlanRoom;
      length += kVlanRoom;
    }
    frames.push_back({data, length, port});
    ++out.frames;
  }
  return out;
}

}  // namespace catchment::softswitch
