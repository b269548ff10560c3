#include "link_watch.hpp"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>

namespace catchment::softswitch {

LinkWatch::LinkWatch()
    : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE)) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (socket_.valid() &&
      bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    socket_ = Descriptor();  // without it, errors of the sockets still tell
  }
}

void LinkWatch::read(const std::function<void(const LinkChange&)>& report) {
  alignas(nlmsghdr) std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size <= 0) {
      return;
    }
    auto left = static_cast<unsigned>(size);
    for (auto* m = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(m, left);
         m = NLMSG_NEXT(m, left)) {
      if (m->nlmsg_type != RTM_NEWLINK && m->nlmsg_type != RTM_DELLINK) {
        continue;
      }
      const auto* link = static_cast<const ifinfomsg*>(NLMSG_DATA(m));
      LinkChange change;
      change.index = link->ifi_index;
      change.present = m->nlmsg_type == RTM_NEWLINK;
      change.up =
          change.present && (link->ifi_flags & IFF_UP) != 0 && (link->ifi_flags & IFF_RUNNING) != 0;
      auto length = static_cast<int>(IFLA_PAYLOAD(m));
      for (const auto* a = IFLA_RTA(link); RTA_OK(a, length); a = RTA_NEXT(a, length)) {
        if (a->rta_type == IFLA_IFNAME) {
          change.interface = static_cast<const char*>(RTA_DATA(a));
        }
      }
      report(change);
    }
  }
}

}  // namespace catchment::softswitch
