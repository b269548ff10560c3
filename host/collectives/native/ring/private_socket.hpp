// A descriptor of a ring's connections that a forked child does not keep: it would hide the end of
// this process from its neighbours, keep the address, and stay in this process's epoll.
#pragma once

#include <catchment/common/file_descriptor.hpp>
#include <catchment/shm/fork_guard.hpp>

namespace catchment::host::ring {

class PrivateSocket {
 public:
  PrivateSocket() = default;
  // Takes what a system call returned; -1 makes it invalid.
  explicit PrivateSocket(int descriptor) : descriptor_(descriptor), own_(descriptor) {}

  int get() const { return descriptor_.get(); }
  bool valid() const { return descriptor_.valid(); }

 private:
  FileDescriptor descriptor_;
  shm::PrivateDescriptor own_{-1};  // ends before the number is free for another file
};

}  // namespace catchment::host::ring
