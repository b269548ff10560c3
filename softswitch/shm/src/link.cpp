#include "catchment/shm/link.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "catchment/shm/error.hpp"
#include "catchment/shm/layout.hpp"

namespace catchment::shm {

namespace {

constexpr std::uint8_t kWake = 1;
constexpr std::uint8_t kFarewell = 2;  // the rest until the hang-up is text
constexpr int kMostUnread = 64;
constexpr std::size_t kMaxReason = sizeof(Welcome::text) - 1;

struct alignas(cmsghdr) Control {
  char bytes[CMSG_SPACE(sizeof(int))];
};

/// The one descriptor that came along; further ones are closed.
FileDescriptor descriptor_in(msghdr& message) {
  FileDescriptor first;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      FileDescriptor owned(fd);
      if (!first.valid()) {
        first = std::move(owned);
      }
    }
  }
  return first;
}

}  // namespace

bool Link::welcome(Attachment attachment, int memory, const std::string& text) {
  Welcome hello{};
  hello.magic = kMagic;
  hello.version = kVersion;
  hello.attached = static_cast<std::uint32_t>(attachment);
  text.copy(hello.text, sizeof hello.text - 1);
  iovec part{&hello, sizeof hello};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (memory >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof memory);
    std::memcpy(CMSG_DATA(c), &memory, sizeof memory);
  }
  return sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof hello);
}

void Link::wake() {
  // A full socket holds wake-ups enough; a closed one is noticed by drain().
  static_cast<void>(send(socket_.get(), &kWake, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void Link::farewell(const std::string& text) {
  // Wake-ups left unread would turn the hang-up into a reset, which loses the text.
  shutdown(socket_.get(), SHUT_RD);
  std::array<char, 4096> unread;
  for (int i = 0;
       i < kMostUnread && recv(socket_.get(), unread.data(), unread.size(), MSG_DONTWAIT) > 0;
       ++i) {
  }
  std::string message(1, static_cast<char>(kFarewell));
  message.append(text, 0, kMaxReason);
  static_cast<void>(
      send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

bool Link::drain() {
  // After a hang-up the rest is finite, and all of it is read, so that the caller learns of the end
  // at once.
  do {
    if (!read_some()) {
      return false;
    }
  } while (hung_up());
  return true;
}

bool Link::hung_up() const {
  pollfd look{socket_.get(), POLLRDHUP, 0};
  return poll(&look, 1, 0) == 1;
}

bool Link::read_some() {
  // Bounded: a side that sends wake-ups without end costs one call each time.
  std::array<char, 512> bytes;
  const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0) {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  }
  const char* const end = bytes.data() + count;
  const char* text = bytes.data();
  if (!reading_reason_) {
    text = std::find(text, end, static_cast<char>(kFarewell));
    if (text != end) {
      reading_reason_ = true;
      ++text;
    }
  }
  if (reading_reason_) {
    const std::size_t room = kMaxReason - std::min(kMaxReason, reason_.size());
    reason_.append(text, std::min(room, static_cast<std::size_t>(end - text)));
  }
  return count != 0;
}

std::optional<Handover> receive_welcome(int socket) {
  Handover out;
  iovec part{&out.welcome, sizeof out.welcome};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      return std::nullopt;
    }
    throw ShmError(CATCHMENT_SHM_DETACHED,
                   std::string("the switch hung up: ") + std::strerror(errno));
  }
  out.memory = descriptor_in(message);
  if (count == 0) {
    throw ShmError(CATCHMENT_SHM_DETACHED, "the switch hung up before it said anything");
  }
  if (count != static_cast<ssize_t>(sizeof out.welcome) || out.welcome.magic != kMagic) {
    throw ShmError(CATCHMENT_SHM_ARGUMENT, "what listens there is not a port of catchment-switch");
  }
  out.welcome.text[sizeof out.welcome.text - 1] = '\0';
  if (out.welcome.version != kVersion) {
    throw ShmError(CATCHMENT_SHM_REFUSED,
                   "the switch speaks version " + std::to_string(out.welcome.version) +
                       " of the format, this library version " + std::to_string(kVersion));
  }
  return out;
}

}  // namespace catchment::shm
