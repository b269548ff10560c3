// The unix socket on which peers ask to attach to a port; one peer is attached at a time.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/shm/channel.hpp"
#include "catchment/shm/layout.hpp"

namespace catchment::shm {

/// The process at the other end of a connection, as the kernel knows it.
struct PeerIdentity {
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
};

/// A peer that asks to attach, on its connection; not answered yet.
struct AttachRequest {
  Link link;
  PeerIdentity who;
  std::string bell;  // where the peer can be woken if it asks to be let in; empty: it does not
};

class Listener {
 public:
  /// Takes over a socket that a killed switch left behind. `mode`: the socket's file permissions,
  /// which say whose processes may attach. Throws ShmError: the path is in use, too long, or its
  /// directory is missing.
  Listener(const std::string& path, ::mode_t mode);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Readable when a peer asks to attach.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// The next connection; nullopt when there is none, or none can be taken (`trouble`): one for
  /// which no descriptor is left is told so, and ended.
  std::optional<AttachRequest> accept();
  /// Why the last one could not be taken, as errno; 0: it was, or there was none.
  [[nodiscard]] int trouble() const { return trouble_; }

 private:
  std::string path_;
  FileDescriptor socket_;
  FileDescriptor spare_;  // given up for a connection that is refused
  int trouble_ = 0;
  struct stat file_{};  // to remove this socket only, not another switch's
};

/// Gives new memory to a peer that asked to attach. Throws ShmError; nullopt: the peer is gone.
std::optional<Channel> admit(AttachRequest request, const Geometry& geometry, std::uint64_t epoch);
/// Lets a peer that asked for it into the memory of the data plane, where it finds its rings.
/// Throws ShmError; nullopt: the peer is gone.
std::optional<Channel> let_in(AttachRequest request, Mapping rings, int memory, std::uint32_t port);
/// Turns away a peer that asked to attach, and tells it why.
void refuse(AttachRequest request, const std::string& why);

}  // namespace catchment::shm
