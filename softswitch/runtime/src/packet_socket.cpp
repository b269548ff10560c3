#include "packet_socket.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace catchment::softswitch {

namespace {

constexpr int kSocketBuffer = 16 << 20;
/// Before each frame: room to put back a VLAN tag that the kernel took out.
constexpr std::size_t kVlanRoom = 4;
constexpr std::size_t kMacAddresses = 12;

Status failed(const std::string& what, const std::string& interface, int error) {
  const StatusCode code = error == EPERM || error == EACCES ? StatusCode::permission_denied
                          : error == ENODEV                 ? StatusCode::not_found
                                                            : StatusCode::internal;
  std::string hint = error == EPERM ? " (needs root or CAP_NET_RAW)" : "";
  return {code, interface + ": " + what + ": " + std::strerror(error) + hint};
}

void set_option(int fd, int level, int name, int value) {
  // Best effort: the switch runs without any of them, only slower.
  static_cast<void>(setsockopt(fd, level, name, &value, sizeof value));
}

}  // namespace

struct ReceiveBatch::Storage {
  std::size_t stride;
  std::size_t max_frame;
  std::unique_ptr<std::uint8_t[]> bytes;
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, kBatch> vectors{};
  struct alignas(cmsghdr) Control {
    char bytes[CMSG_SPACE(sizeof(tpacket_auxdata))];
  };
  std::array<Control, kBatch> controls{};
};

ReceiveBatch::ReceiveBatch(std::size_t max_frame) : storage_(std::make_unique<Storage>()) {
  Storage& s = *storage_;
  s.max_frame = max_frame;
  s.stride = (max_frame + 2 * kVlanRoom + 127) / 64 * 64;
  s.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(kBatch * s.stride);
  for (std::size_t i = 0; i < kBatch; ++i) {
    s.vectors[i] = {s.bytes.get() + i * s.stride + kVlanRoom, max_frame};
    s.messages[i].msg_hdr.msg_iov = &s.vectors[i];
    s.messages[i].msg_hdr.msg_iovlen = 1;
    s.messages[i].msg_hdr.msg_control = &s.controls[i];
  }
}

ReceiveBatch::~ReceiveBatch() = default;

Result<PacketSocket> PacketSocket::open(const std::string& interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) {
    return failed("no such network interface", interface, errno);
  }
  Descriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    return failed("cannot open a packet socket", interface, errno);
  }
  const int fd = socket.get();
  int one = 1;
  if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) != 0) {
    return failed("cannot ignore outgoing frames (Linux 4.20 or later is needed)", interface,
                  errno);
  }
  set_option(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
  set_option(fd, SOL_PACKET, PACKET_AUXDATA, 1);
  for (const int name : {SO_RCVBUF, SO_SNDBUF, SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
    set_option(fd, SOL_SOCKET, name, kSocketBuffer);
  }
  packet_mreq promiscuous{};
  promiscuous.mr_ifindex = static_cast<int>(index);
  promiscuous.mr_type = PACKET_MR_PROMISC;
  if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) != 0) {
    return failed("cannot be made promiscuous", interface, errno);
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(index);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed("cannot bind", interface, errno);
  }
  return PacketSocket(std::move(socket), static_cast<int>(index));
}

Received PacketSocket::receive(ReceiveBatch& batch, std::uint32_t port,
                               std::vector<rt::InputFrame>& frames) {
  ReceiveBatch::Storage& s = *batch.storage_;
  Received out;
  for (mmsghdr& message : s.messages) {
    message.msg_hdr.msg_controllen = sizeof(ReceiveBatch::Storage::Control);
    message.msg_hdr.msg_flags = 0;
  }
  const int count = recvmmsg(socket_.get(), s.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (count < 0) {
    out.error = errno == EAGAIN || errno == EINTR ? 0 : errno;
    return out;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    msghdr& header = s.messages[i].msg_hdr;
    auto* data = static_cast<std::uint8_t*>(s.vectors[i].iov_base);
    std::uint32_t length = s.messages[i].msg_len;
    if ((header.msg_flags & MSG_TRUNC) != 0) {
      ++out.too_long;
      continue;
    }
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) {
        continue;
      }
      tpacket_auxdata aux;
      std::memcpy(&aux, CMSG_DATA(c), sizeof aux);
      unfinished_checksum_ |= (aux.tp_status & TP_STATUS_CSUMNOTREADY) != 0;
      if ((aux.tp_status & TP_STATUS_VLAN_VALID) != 0 && length >= kMacAddresses) {
        const bool typed = (aux.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
        const std::uint16_t tag[2] = {htons(typed ? aux.tp_vlan_tpid : ETH_P_8021Q),
                                      htons(aux.tp_vlan_tci)};
        std::memmove(data - kVlanRoom, data, kMacAddresses);
        std::memcpy(data - kVlanRoom + kMacAddresses, tag, sizeof tag);
        data -= kVlanRoom;
        length += kVlanRoom;
      }
    }
    frames.push_back({data, length, port});
    ++out.frames;
  }
  return out;
}

Sent PacketSocket::send(const rt::OutFrame* frames, std::size_t count) {
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, kBatch> vectors;
  const std::size_t batch = std::min(count, kBatch);
  for (std::size_t i = 0; i < batch; ++i) {
    vectors[i] = {frames[i].data, frames[i].length};
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  Sent out;
  while (out.frames < batch) {
    const int sent = sendmmsg(socket_.get(), messages.data() + out.frames,
                              static_cast<unsigned>(batch - out.frames), MSG_DONTWAIT);
    if (sent > 0) {
      for (int i = 0; i < sent; ++i) {
        out.bytes += frames[out.frames++].length;
      }
      out.delivered += static_cast<std::size_t>(sent);
      continue;
    }
    switch (errno) {
      case EINTR:
        continue;
      case EAGAIN:
        out.full = true;
        return out;
      case ENOBUFS:
        ++out.refused;
        break;
      case EMSGSIZE:
      case EINVAL:  // shorter than an Ethernet header
        ++out.too_long;
        break;
      default:
        out.error = errno;
        return out;
    }
    ++out.frames;
  }
  return out;
}

std::uint64_t PacketSocket::take_missed() const {
  tpacket_stats statistics{};  // the kernel starts anew after each look
  socklen_t size = sizeof statistics;
  return getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0
             ? statistics.tp_drops
             : 0;
}

}  // namespace catchment::softswitch
