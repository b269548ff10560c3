#include "ethernet_port.hpp"

#include <net/if.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

namespace catchment::softswitch {

Result<std::unique_ptr<Port>> EthernetPort::open(const std::string& interface,
                                                 const PortContext& context) {
  auto socket = PacketSocket::open(interface, context.max_frame_bytes);
  if (!socket.ok()) {
    return socket.status();
  }
  return std::unique_ptr<Port>(new EthernetPort(interface, context, std::move(socket.value())));
}

EthernetPort::EthernetPort(std::string interface, const PortContext& context, PacketSocket socket)
    : interface_(std::move(interface)),
      context_(context),
      socket_(std::move(socket)),
      up_(interface_up()) {}

bool EthernetPort::interface_up() const {
  ifreq request{};
  std::strncpy(request.ifr_name, interface_.c_str(), IFNAMSIZ - 1);
  return ioctl(socket_->descriptor(), SIOCGIFFLAGS, &request) == 0 &&
         (request.ifr_flags & IFF_UP) != 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

Received EthernetPort::receive(std::vector<rt::InputFrame>& frames) {
  if (!socket_) {
    return {};
  }
  Received out = socket_->ring().receive(context_.number, frames);
  if (out.too_long > 0 && !warned_length_) {
    warned_length_ = true;
    out.notice = "frames longer than " + std::to_string(socket_->ring().longest()) +
                 " bytes are dropped; the sender may leave segmentation to its device (ethtool -K "
                 "IF tso off gso off gro off)";
  } else if (socket_->ring().saw_unfinished_checksum() && !warned_checksums_) {
    warned_checksums_ = true;
    out.notice =
        "the sender leaves its checksums to its device: they will be wrong (ethtool -K IF tx off)";
  } else if (!socket_->passes_super_packets() && !logged_plain_) {
    logged_plain_ = true;
    out.notice = "UDP passes frame by frame: merged UDP needs Linux 6.2 or later";
  }
  return out;
}

Sent EthernetPort::send(std::span<const rt::OutFrame> frames) {
  if (!socket_) {
    return {.error = ENODEV};
  }
  return socket_->send(frames);
}

std::string EthernetPort::check_link() {
  const unsigned index = if_nametoindex(interface_.c_str());
  const bool was_up = up_;
  if (socket_) {
    socket_->take_error();
  }
  // An interface of a larger MTU needs a ring of larger entries.
  const bool outgrown = socket_ && socket_->outgrown(interface_);
  if (socket_ && (static_cast<unsigned>(socket_->index()) != index || outgrown)) {
    missed_ += socket_->take_missed();
    socket_.reset();
    up_ = false;
    if (index == 0) {
      return "the interface is gone";
    }
  }
  if (!socket_) {
    if (index == 0) {
      return {};
    }
    auto socket = PacketSocket::open(interface_, context_.max_frame_bytes);
    if (!socket.ok()) {
      if (socket.status().message() == reopen_failure_) {
        return {};
      }
      return reopen_failure_ = socket.status().message();
    }
    reopen_failure_.clear();
    socket_.emplace(std::move(socket.value()));
    up_ = interface_up();
    if (outgrown && up_ == was_up) {
      return "frames may have " + std::to_string(socket_->ring().longest()) + " bytes now";
    }
    return up_ ? "the interface is back" : "the interface is back, but down";
  }
  up_ = interface_up();
  if (up_ == was_up) {
    return {};
  }
  return up_ ? "up" : "down";
}

PortIoStatistics EthernetPort::io_statistics() const {
  if (socket_) {
    missed_ += socket_->take_missed();
  }
  return {.missed = missed_, .merged_udp = socket_ && socket_->passes_super_packets()};
}

}  // namespace catchment::softswitch
