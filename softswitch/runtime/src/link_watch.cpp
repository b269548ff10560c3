#include "link_watch.hpp"

#include <linux/rtnetlink.h>
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
    socket_ = FileDescriptor();  // without it, the ports are looked at now and then
  }
}

void LinkWatch::drain() {
  std::array<char, 65536> buffer;
  while (recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace catchment::softswitch
