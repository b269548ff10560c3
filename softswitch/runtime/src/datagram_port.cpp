#include "datagram_port.hpp"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "catchment/common/big_endian.hpp"

namespace catchment::softswitch {

namespace {

constexpr std::size_t kNetwork = ETH_HLEN, kTransport = kNetwork + sizeof(iphdr);
constexpr UdpFrame kPlain{
    .network = kNetwork, .transport = kTransport, .payload = kTransport + kUdpBytes};
constexpr std::uint8_t kVersionAndLength = 0x45;  // IPv4 without options
constexpr std::uint8_t kTimeToLive = 64;
constexpr std::size_t kIpProtocol = 9;
// Locally administered, then the IPv4 address.
constexpr std::array<std::uint8_t, 2> kMacPrefix = {0x02, 0x00};
constexpr int kBufferBytes = 8 << 20;
constexpr std::string_view kShown = "as=", kShared = "shared";

Result<sockaddr_in> address_of(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const auto colon = text.find(':');
  const std::string host = text.substr(0, colon);
  const std::string_view port =
      colon == std::string::npos ? std::string_view() : std::string_view(text).substr(colon + 1);
  std::uint16_t number = 0;
  const auto [rest, error] = std::from_chars(port.begin(), port.end(), number);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1 || error != std::errc() ||
      rest != port.end() || number == 0) {
    return Status(StatusCode::invalid_argument,
                  "'" + text + "' is not IP:PORT, an IPv4 address and a port from 1 to 65535");
  }
  address.sin_port = htons(number);
  return address;
}

// Beyond the system's limit if we may, else as much as it gives.
void set_buffer(int socket, int forced, int plain) {
  if (setsockopt(socket, SOL_SOCKET, forced, &kBufferBytes, sizeof kBufferBytes) != 0) {
    setsockopt(socket, SOL_SOCKET, plain, &kBufferBytes, sizeof kBufferBytes);
  }
}

}  // namespace

Result<DatagramTarget> DatagramTarget::parse(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  DatagramTarget target;
  if (words.size() > 2 && words.back() == kShared) {
    target.shared = true;
    words.pop_back();
  }
  if (words.size() == 3 && words[2].starts_with(kShown)) {
    words[2].erase(0, kShown.size());
  } else if (words.size() == 2) {
    words.push_back(words[0]);
  } else {
    return Status(
        StatusCode::invalid_argument,
        "'udp:" + text + "' is not udp:LOCAL,PEER[,as=ADDRESS][,shared], each of them IP:PORT");
  }
  std::array<sockaddr_in, 3> addresses{};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto address = address_of(words[i]);
    if (!address.ok()) {
      return address.status();
    }
    addresses[i] = address.value();
  }
  target.local = addresses[0];
  target.peer = addresses[1];
  target.shown = addresses[2];
  return target;
}

Result<std::unique_ptr<Port>> DatagramPort::open(const std::string& target,
                                                 const PortContext& context) {
  const auto parsed = DatagramTarget::parse(target);
  if (!parsed.ok()) {
    return parsed.status();
  }
  FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto as_address = [](const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
  };
  const int fd = socket.get();
  const int on = 1;
  const int shared = parsed.value().shared ? 1 : 0;
  const int whole = IP_PMTUDISC_DO;
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
  const sockaddr_in& local = parsed.value().local;
  const sockaddr_in& peer = parsed.value().peer;
  // The program changes what it passes on: there is no UDP checksum, and no fragments.
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &shared, sizeof shared) != 0 ||
      setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole) != 0 ||
      bind(fd, as_address(local), sizeof local) != 0 ||
      connect(fd, as_address(peer), sizeof peer) != 0) {
    return Status(StatusCode::failed_precondition,
                  "udp:" + target + ": " + std::generic_category().message(errno));
  }
  return std::unique_ptr<Port>(
      new DatagramPort(target, parsed.value(), context, std::move(socket)));
}

DatagramPort::DatagramPort(const std::string& target, const DatagramTarget& parsed,
                           const PortContext& context, FileDescriptor socket)
    : name_("udp:" + target),
      context_(context),
      socket_(std::move(socket)),
      peer_(parsed.peer),
      stride_(context.max_frame_bytes + 1),  // a longer frame has a length that none of ours has
      in_(kBatch * stride_) {
  std::uint8_t* const ip = header_.data() + kNetwork;
  std::uint8_t* const udp = header_.data() + kTransport;
  std::fill_n(header_.data(), ETH_ALEN, std::uint8_t{0xff});
  std::ranges::copy(kMacPrefix, header_.data() + ETH_ALEN);
  std::memcpy(header_.data() + ETH_ALEN + kMacPrefix.size(), &peer_.sin_addr, 4);
  store16(header_.data() + kNetwork - 2, ETHERTYPE_IP);
  ip[0] = kVersionAndLength;
  store16(ip + kIpFragment, kDontFragment);
  ip[kIpTtl] = kTimeToLive;
  ip[kIpProtocol] = IPPROTO_UDP;
  std::memcpy(ip + kIpAddresses, &peer_.sin_addr, 4);
  std::memcpy(ip + kIpAddresses + 4, &parsed.shown.sin_addr, 4);
  std::memcpy(udp, &peer_.sin_port, 2);
  std::memcpy(udp + 2, &parsed.shown.sin_port, 2);
  for (std::size_t i = 0; i < kBatch; ++i) {
    in_parts_[i] = {&in_[i * stride_ + kHeaderBytes], stride_ - kHeaderBytes};
    in_messages_[i].msg_hdr.msg_iov = &in_parts_[i];
    in_messages_[i].msg_hdr.msg_iovlen = 1;
  }
}

Received DatagramPort::receive(std::vector<rt::InputFrame>& frames) {
  Received out;
  const int count = recvmmsg(socket_.get(), in_messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (count < 0) {
    // Nobody listens at the peer: an ICMP message says so in place of a frame, and the program's
    // protocol sends again.
    const bool idle = errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED;
    out.error = idle ? 0 : errno;
    return out;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::size_t bytes = in_messages_[i].msg_len;
    if (kHeaderBytes + bytes > context_.max_frame_bytes) {
      ++out.too_long;
      continue;
    }
    std::uint8_t* const frame = &in_[i * stride_];
    std::ranges::copy(header_, frame);
    kPlain.set_lengths(frame, bytes);
    frames.push_back({frame, static_cast<std::uint32_t>(kHeaderBytes + bytes), context_.number});
    ++out.frames;
  }
  return out;
}

std::span<std::uint8_t> DatagramPort::payload_of(const rt::OutFrame& frame) const {
  const auto udp = UdpFrame::find({frame.data, frame.length}, frame.length);
  if (!udp || udp->v6 ||
      std::memcmp(frame.data + udp->network + kIpAddresses + 4, &peer_.sin_addr, 4) != 0 ||
      std::memcmp(frame.data + udp->transport + 2, &peer_.sin_port, 2) != 0) {
    return {};
  }
  return {frame.data + udp->payload, frame.length - udp->payload};
}

Sent DatagramPort::send(std::span<const rt::OutFrame> frames) {
  Sent out;
  std::array<iovec, kBatch> parts{};
  std::array<mmsghdr, kBatch> messages{};
  std::size_t staged = 0;
  for (const rt::OutFrame& frame : frames.first(std::min(frames.size(), kBatch))) {
    const std::span<std::uint8_t> payload = payload_of(frame);
    if (payload.empty()) {
      if (staged != 0) break;  // those before it leave first
      ++out.frames;
      ++out.refused;
      continue;
    }
    parts[staged] = {payload.data(), payload.size()};
    messages[staged].msg_hdr.msg_iov = &parts[staged];
    messages[staged++].msg_hdr.msg_iovlen = 1;
  }
  for (std::size_t sent = 0; sent != staged;) {
    const int count =
        sendmmsg(socket_.get(), &messages[sent], static_cast<unsigned>(staged - sent), 0);
    if (count > 0) {
      for (int i = 0; i < count; ++i)
        out.bytes += parts[sent + static_cast<std::size_t>(i)].iov_len;
      sent += static_cast<std::size_t>(count);
      out.delivered += static_cast<std::size_t>(count);
      out.frames += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      out.full = true;
      break;
    } else if (errno == EMSGSIZE) {
      ++sent;
      ++out.frames;
      ++out.too_long;
    } else if (errno != EINTR && errno != ECONNREFUSED) {  // the latter is of an earlier datagram
      ++sent;
      ++out.frames;
      ++out.refused;
    }
  }
  return out;
}

std::string DatagramPort::check_link() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);  // taken back
  return {};
}

}  // namespace catchment::softswitch
