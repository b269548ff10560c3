#include "connections.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace catchment::server {

namespace {

// What a message costs on the wire beside its bytes: a call's headers, and TLS and HTTP/2 frames.
constexpr std::size_t kCallBytes = 512;
constexpr std::size_t kFrameShare = 64;
// What a client sends for answers: one window update, and less, for so many bytes.
constexpr std::size_t kAnswerShare = 256;
// What a connection is forgiven, for pings and the like.
constexpr std::size_t kBytesPerSecond = 1024;
// Between two looks, so that a long message does not wake us with each of its segments.
constexpr auto kPause = std::chrono::milliseconds(1);
constexpr int kMostEvents = 256;
// Of those that cannot be written to, arrivals may be missed: all are looked at as often.
constexpr auto kRound = std::chrono::milliseconds(250);

std::string client_name(const std::string& address, std::uint16_t port) {
  return address + " port " + std::to_string(port);
}

// Of the other end of a socket.
std::string client_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "";
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    return client_name(text, ntohs(four.sin_port));
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    ::inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  }
  return client_name(text, ntohs(six.sin6_port));
}

// Of gRPC's name: ipv4:10.0.0.1:4000, ipv6:[fe80::1%25eth0]:4000, its brackets as %5B and %5D.
std::string client_of(const std::string& peer) {
  const auto colon = peer.rfind(':');
  const auto begin = peer.find(':') + 1;
  if (!peer.starts_with("ipv") || colon < begin) {
    return "";
  }
  std::string address = peer.substr(begin, colon - begin);
  for (const std::string bracket : {"[", "%5B"}) {
    if (address.starts_with(bracket)) {
      address = address.substr(bracket.size());
      const auto end = address.find_first_of("%]");  // a scope, or the end
      address = address.substr(0, end);
      break;
    }
  }
  return client_name(address, static_cast<std::uint16_t>(std::stoul(peer.substr(colon + 1))));
}

std::uint64_t received_on(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received
                                                                        : 0;
}

}  // namespace

Connections::Connections(ReceiveLimits limits, const Log& log) : limits_(limits), log_(log) {}

Connections::~Connections() { stop(); }

void Connections::start(std::vector<int> listeners, HandOver hand_over) {
  listeners_ = std::move(listeners);
  hand_over_ = std::move(hand_over);
  events_ = ::epoll_create1(EPOLL_CLOEXEC);
  ending_ = ::eventfd(0, EFD_CLOEXEC);
  std::vector<int> level_triggered = listeners_;
  level_triggered.push_back(ending_);
  for (const int one : level_triggered) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = one}};
    ::epoll_ctl(events_, EPOLL_CTL_ADD, one, &event);
  }
  thread_ = std::thread([this] { watch(); });
}

void Connections::stop() {
  if (!thread_.joinable()) {
    return;
  }
  const std::uint64_t one = 1;
  static_cast<void>(::write(ending_, &one, sizeof one));
  thread_.join();
  const std::lock_guard lock(mutex_);
  while (!connections_.empty()) {
    forget(connections_.begin()->first);
  }
  for (const int socket : listeners_) {
    ::close(socket);
  }
  ::close(events_);
  ::close(ending_);
}

void Connections::watch() {
  std::array<epoll_event, kMostEvents> events{};
  auto round = Clock::now() + kRound;
  while (true) {
    const int count = ::epoll_wait(events_, events.data(), kMostEvents, wait_ms());
    for (int i = 0; i < count; ++i) {
      const int socket = events[static_cast<std::size_t>(i)].data.fd;
      if (socket == ending_) {
        return;
      }
      if (std::find(listeners_.begin(), listeners_.end(), socket) != listeners_.end()) {
        accept_from(socket);
        continue;
      }
      const std::lock_guard lock(mutex_);
      if ((events[static_cast<std::size_t>(i)].events & (EPOLLHUP | EPOLLERR)) != 0) {
        forget(socket);  // gRPC has shut it down, or the client reset it
      } else if (const auto found = connections_.find(socket); found != connections_.end()) {
        update(socket, found->second);
      }
    }
    {
      const std::lock_guard lock(mutex_);
      if (Clock::now() >= round) {
        for (auto& [socket, connection] : connections_) {
          update(socket, connection);
        }
        round = Clock::now() + kRound;
      }
      enforce();
    }
    std::this_thread::sleep_for(kPause);
  }
}

int Connections::wait_ms() const {
  const std::lock_guard lock(mutex_);
  return connections_.empty() ? -1 : static_cast<int>(kRound.count());
}

void Connections::accept_from(int listener) {
  const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) {
    return;  // the client is gone, or there are too many files: tried again after the pause
  }
  // gRPC closes its descriptor when it likes; ours shows the same connection until we close it.
  const int ours = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (ours < 0) {
    ::close(socket);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    Connection connection;
    connection.client = client_of(socket);
    connection.forgiven = Clock::now();
    by_client_[connection.client] = ours;
    connections_.emplace(ours, std::move(connection));
    ++counts_.accepted;
  }
  // Each arrival is an event, also of what gRPC has read by then: for the socket can be written to.
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.fd = ours}};
  ::epoll_ctl(events_, EPOLL_CTL_ADD, ours, &event);
  hand_over_(listener, socket);
}

void Connections::received(const std::string& peer, std::size_t bytes) {
  settle(peer, bytes + bytes / kFrameShare + kCallBytes, true);
}

void Connections::sent(const std::string& peer, std::size_t bytes) {
  settle(peer, bytes / kAnswerShare, false);
}

void Connections::settle(const std::string& peer, std::size_t bytes, bool spoke) {
  const std::string client = client_of(peer);
  const std::lock_guard lock(mutex_);
  const auto found = by_client_.find(client);
  if (found == by_client_.end()) {
    return;
  }
  Connection& connection = connections_.at(found->second);
  connection.spoke = connection.spoke || spoke;
  connection.accounted += bytes;
  update(found->second, connection);
}

ConnectionCounts Connections::counts() const {
  const std::lock_guard lock(mutex_);
  ConnectionCounts counts = counts_;
  counts.open = connections_.size();
  return counts;
}

std::vector<std::string> Connections::silent(std::size_t most) const {
  std::vector<std::string> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [socket, connection] : connections_) {
    if (!connection.spoke && found.size() < most) {
      found.push_back(connection.client);
    }
  }
  return found;
}

// The functions below are called with the mutex held.

void Connections::update(int socket, Connection& connection) {
  if (connection.cut) {
    return;
  }
  const std::uint64_t received = received_on(socket);
  const auto now = Clock::now();
  const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(now - connection.forgiven);
  connection.forgiven += elapsed;
  connection.accounted += static_cast<std::uint64_t>(elapsed.count()) * kBytesPerSecond;
  connection.accounted = std::min(connection.accounted, received);  // nothing is saved up
  counts_.bytes -= connection.owed;
  connection.owed = received - connection.accounted;
  counts_.bytes += connection.owed;
  if (connection.owed > limits_.connection_bytes) {
    cut_off(socket, connection, "the limit of a connection");
  }
}

void Connections::enforce() {
  while (counts_.bytes > limits_.all_bytes) {
    const auto most = std::max_element(
        connections_.begin(), connections_.end(),
        [](const auto& a, const auto& b) { return a.second.owed < b.second.owed; });
    cut_off(most->first, most->second, "all connections have too many");
  }
}

void Connections::cut_off(int socket, Connection& connection, const std::string& why) {
  log_.info("cut off: " + connection.client + " has sent " + std::to_string(connection.owed) +
            " bytes that are no whole message yet (" + why + ")");
  ::shutdown(socket, SHUT_RDWR);
  connection.cut = true;
  counts_.bytes -= connection.owed;
  connection.owed = 0;
  ++counts_.cut_off;
}

void Connections::forget(int socket) {
  const auto found = connections_.find(socket);
  if (found == connections_.end()) {
    return;
  }
  counts_.bytes -= found->second.owed;
  // Another connection may have had the same address since.
  if (const auto named = by_client_.find(found->second.client);
      named != by_client_.end() && named->second == socket) {
    by_client_.erase(named);
  }
  connections_.erase(found);
  ::close(socket);
}

}  // namespace catchment::server
