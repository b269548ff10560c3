#include "catchment/shm/listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "catchment/common/leftover_socket.hpp"
#include "catchment/shm/bell.hpp"
#include "catchment/shm/error.hpp"
#include "unix_socket.hpp"

namespace catchment::shm {

namespace {

constexpr int kBacklog = 16;

FileDescriptor no_file() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

FileDescriptor accept_from(int socket, sockaddr_un& from, socklen_t& bytes) {
  bytes = sizeof from;
  return FileDescriptor(
      accept4(socket, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

}  // namespace

Listener::Listener(const std::string& path, ::mode_t mode)
    : path_(path), socket_(unix_socket(SOCK_STREAM)), spare_(no_file()) {
  const sockaddr_un address = address_of(path);
  if (const auto fault = remove_leftover_socket(address)) {
    throw ShmError(CATCHMENT_SHM_ARGUMENT, path + ": " + *fault);
  }
  // No peer may connect before the permissions are set.
  fchmod(socket_.get(), 0);
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw ShmError(path + ": cannot bind", errno);
  }
  if (lstat(path.c_str(), &file_) != 0 || chmod(path.c_str(), mode) != 0 ||
      listen(socket_.get(), kBacklog) != 0) {
    const int error = errno;
    unlink(path.c_str());
    throw ShmError(path + ": cannot listen", error);
  }
}

Listener::~Listener() {
  struct stat status{};
  if (lstat(path_.c_str(), &status) == 0 && status.st_dev == file_.st_dev &&
      status.st_ino == file_.st_ino) {
    unlink(path_.c_str());
  }
}

std::optional<AttachRequest> Listener::accept() {
  sockaddr_un from{};
  socklen_t from_bytes = 0;
  FileDescriptor socket = accept_from(socket_.get(), from, from_bytes);
  const bool none = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
  trouble_ = socket.valid() || none ? 0 : errno;
  if (trouble_ == EMFILE || trouble_ == ENFILE) {
    // Who is left in the queue would wait, and keep this process awake.
    spare_ = FileDescriptor();
    if (FileDescriptor refused = accept_from(socket_.get(), from, from_bytes); refused.valid()) {
      refuse({Link(std::move(refused)), {}, {}},
             std::string("the switch has no room: ") + std::strerror(trouble_));
    }
    spare_ = no_file();
  }
  if (!socket.valid()) {
    return std::nullopt;
  }
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    credentials = {};
  }
  return AttachRequest{Link(std::move(socket)),
                       {static_cast<std::uint32_t>(credentials.pid), credentials.uid},
                       bell_in(from, from_bytes)};
}

std::optional<Channel> admit(AttachRequest request, const Geometry& geometry, std::uint64_t epoch) {
  Mapping mapping = Mapping::create(geometry, epoch, request.who.pid);
  if (!request.link.welcome(Attachment::rings, mapping.descriptor(), {})) {
    return std::nullopt;
  }
  mapping.close_descriptor();
  return Channel(std::move(mapping), std::move(request.link), Side::switch_side);
}

std::optional<Channel> let_in(AttachRequest request, Mapping rings, int memory,
                              std::uint32_t port) {
  if (!request.link.welcome(Attachment::let_in, memory, std::to_string(port))) {
    return std::nullopt;
  }
  return Channel(std::move(rings), std::move(request.link), Side::switch_side);
}

void refuse(AttachRequest request, const std::string& why) {
  request.link.welcome(Attachment::refused, -1, why);
}

}  // namespace catchment::shm
