#include "packet_socket.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace catchment::softswitch {

namespace {

constexpr int kBuffer = 16 << 20;  // for frames that leave, and for super-packets that wait
/// So long after a peer's last super-packet it is taken to want some itself.
constexpr auto kReturns = std::chrono::seconds(1);
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

/// Linux 6.2 is the first whose packet sockets pass merged UDP; older ones drop it.
bool kernel_passes_merged_udp() {
  utsname system{};
  int major = 0;
  int minor = 0;
  return uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 2));
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
  FileDescriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
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
  for (const int name : {SO_SNDBUF, SO_SNDBUFFORCE, SO_RCVBUF, SO_RCVBUFFORCE}) {
    set_option(fd, SOL_SOCKET, name, kBuffer);
  }
  // What does not fit an entry of the ring waits in the socket's queue.
  const bool noted = kernel_passes_merged_udp() &&
                     setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) == 0 &&
                     setsockopt(fd, SOL_PACKET, PACKET_COPY_THRESH, &one, sizeof one) == 0;
  const int mtu = ask_mtu(fd, interface);
  const std::size_t longest =
      mtu < 0 ? max_frame : std::min(max_frame, static_cast<std::size_t>(mtu) + kLinkHeaders);
  ReceiveRing ring;
  if (const int error = ring.open(fd, longest, noted); error != 0) {
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
  return PacketSocket(std::move(socket), std::move(ring), static_cast<int>(index), mtu, noted);
}

bool PacketSocket::outgrown(const std::string& interface) const {
  return mtu_ < ask_mtu(socket_.get(), interface);
}

int PacketSocket::take_error() {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::size_t PacketSocket::longest_merged() const {
  const bool wanted = passes_super_packets() && mtu_ > 0 &&
                      std::chrono::steady_clock::now() - ring_.last_super_packet() < kReturns;
  return wanted ? static_cast<std::size_t>(mtu_) + ETH_HLEN : 0;
}

Sent PacketSocket::send(std::span<const rt::OutFrame> frames) {
  const std::size_t longest = frames.size() > 1 ? longest_merged() : 0;
  batch_->fill(frames, noted_, longest);
  Sent out;
  for (std::size_t next = 0; next < batch_->size();) {
    const int sent = sendmmsg(socket_.get(), batch_->message(next),
                              static_cast<unsigned>(batch_->size() - next), MSG_DONTWAIT);
    if (sent > 0) {
      for (const std::size_t end = next + static_cast<std::size_t>(sent); next != end; ++next) {
        for (std::size_t left = batch_->frames_of(next); left > 0; --left) {
          out.bytes += frames[out.frames++].length;
          ++out.delivered;
        }
      }
      continue;
    }
    const std::size_t refused = batch_->frames_of(next);
    switch (errno) {
      case EINTR:
        continue;
      case EAGAIN:
        out.full = true;
        return out;
      case ENOBUFS:
        out.refused += refused;
        break;
      case EMSGSIZE:
      case EINVAL:  // shorter than an Ethernet header, or a kernel before Linux 6.2
        if (refused > 1) {
          batch_->refuse();
          return out;  // the rest once more, as they are
        }
        ++out.too_long;
        break;
      default:
        out.error = errno;
        return out;
    }
    out.frames += refused;
    ++next;
  }
  return out;
}

std::uint64_t PacketSocket::take_missed() const {
  tpacket_stats statistics{};  // the kernel starts anew after each look
  socklen_t size = sizeof statistics;
  const bool counted =
      getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0;
  return ring_.take_missed() + (counted ? statistics.tp_drops : 0);
}

}  // namespace catchment::softswitch
