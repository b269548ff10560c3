#include "packet_socket.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace catchment::softswitch {

namespace {

constexpr int kSendBuffer = 16 << 20;
/// Ethernet and two VLAN tags, above the MTU.
constexpr std::size_t kLinkHeaders = ETH_HLEN + 8;

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

/// -1: no such interface.
int ask_mtu(int fd, const std::string& interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  return ioctl(fd, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : -1;
}

}  // namespace

Result<PacketSocket> PacketSocket::open(const std::string& interface, std::size_t max_frame) {
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
  for (const int name : {SO_SNDBUF, SO_SNDBUFFORCE}) {
    set_option(fd, SOL_SOCKET, name, kSendBuffer);
  }
  const int mtu = ask_mtu(fd, interface);
  const std::size_t longest =
      mtu < 0 ? max_frame : std::min(max_frame, static_cast<std::size_t>(mtu) + kLinkHeaders);
  ReceiveRing ring;
  if (const int error = ring.open(fd, longest); error != 0) {
    return failed("cannot have a receive ring", interface, error);
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
  return PacketSocket(std::move(socket), std::move(ring), static_cast<int>(index), mtu);
}

bool PacketSocket::outgrown(const std::string& interface) const {
  return mtu_ < ask_mtu(socket_.get(), interface);
}

int PacketSocket::take_error() {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
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
