#include "catchment/shm/bell.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "catchment/shm/abstract_name.hpp"
#include "catchment/shm/error.hpp"
#include "unix_socket.hpp"

namespace catchment::shm {

namespace {

constexpr const char* kPrefix = "catchment-";
constexpr char kAfterName = '.';
constexpr int kMostUnread = 64;

void bind_to(int socket, const std::string& name) {
  const AbstractName abstract(name);
  if (bind(socket, abstract.address(), abstract.bytes()) != 0) {
    throw ShmError("cannot give a unix socket a name", errno);
  }
}

std::string drawn_name() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    throw ShmError("cannot draw a name", errno);
  }
  std::array<char, 2 * sizeof number + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return kPrefix + std::string(text.data());
}

}  // namespace

Bell::Bell() : name_(drawn_name()), socket_(unix_socket(SOCK_DGRAM)) {
  bind_to(socket_.get(), name_);
}

void Bell::drain() const {
  std::array<char, 1> byte{};
  for (int i = 0; i < kMostUnread && recv(socket_.get(), byte.data(), byte.size(), 0) >= 0; ++i) {
  }
}

void Bell::lend_name(int socket) { bind_to(socket, name_ + kAfterName + std::to_string(lent_++)); }

std::string bell_in(const sockaddr_un& address, socklen_t bytes) {
  constexpr std::size_t kBegin = offsetof(sockaddr_un, sun_path) + 1;
  if (bytes <= kBegin || bytes > sizeof address || address.sun_path[0] != '\0') {
    return {};
  }
  const std::string told(address.sun_path + 1, bytes - kBegin);
  const std::string name = told.substr(0, told.find(kAfterName));
  return name.starts_with(kPrefix) && name.size() < kBellName ? name : std::string();
}

Ringer::Ringer() : socket_(unix_socket(SOCK_DGRAM)) {}

bool Ringer::ring(const std::string& name) const {
  const AbstractName abstract(name);
  // A full queue holds wake-ups enough.
  return sendto(socket_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, abstract.address(),
                abstract.bytes()) == 1 ||
         errno == EAGAIN;
}

}  // namespace catchment::shm
