#include "listening_sockets.hpp"

#include <linux/tcp.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "start_error.hpp"

namespace catchment::server {

namespace {

constexpr int kBacklog = 4096;
constexpr int kOn = 1;
constexpr int kOff = 0;

StartError cannot_listen(const std::string& address, const std::string& why) {
  return StartError("cannot listen on " + address + " (--grpc): " + why);
}

std::pair<std::string, std::string> host_and_port(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) {
    throw cannot_listen(address, "it is neither unix:PATH nor ADDRESS:PORT");
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return {host, address.substr(colon + 1)};
}

std::uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char port[NI_MAXSERV] = "0";
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, nullptr, 0, port, sizeof port,
                NI_NUMERICSERV);
  return static_cast<std::uint16_t>(std::stoul(port));
}

// -1, with errno set, where that fails.
int listen_on(const addrinfo& where) {
  const int socket =
      ::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol);
  if (socket < 0) {
    return -1;
  }
  // Connections have the options of the socket that they came to.
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
  if (where.ai_family == AF_INET6) {
    ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &kOff, sizeof kOff);  // [::] is IPv4 as well
  }
  if (::bind(socket, where.ai_addr, where.ai_addrlen) != 0 || ::listen(socket, kBacklog) != 0) {
    const int error = errno;
    ::close(socket);
    errno = error;
    return -1;
  }
  return socket;
}

}  // namespace

ListeningSockets listen_at(const std::string& address) {
  const auto [host, port] = host_and_port(address);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int unknown =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (unknown != 0) {
    throw cannot_listen(address, ::gai_strerror(unknown));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  ListeningSockets made;
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (made.port != 0) {  // the same for all addresses of the name
      auto* const port_field = one->ai_family == AF_INET6
                                   ? &reinterpret_cast<sockaddr_in6*>(one->ai_addr)->sin6_port
                                   : &reinterpret_cast<sockaddr_in*>(one->ai_addr)->sin_port;
      *port_field = htons(made.port);
    }
    if (const int socket = listen_on(*one); socket >= 0) {
      made.sockets.push_back(socket);
      made.port = port_of(socket);
    } else {
      error = errno;
    }
  }
  if (made.sockets.empty()) {
    throw cannot_listen(address, std::strerror(error));
  }
  return made;
}

}  // namespace catchment::server
