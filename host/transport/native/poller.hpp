// What the I/O thread sleeps on: its socket, a timer, and a wake-up from other threads.
#pragma once

#include "catchment/common/clock.hpp"
#include "catchment/common/file_descriptor.hpp"

namespace catchment::host {

class Poller {
 public:
  explicit Poller(int socket);

  // Sleeps until the socket is readable (or writable, if asked for), `deadline`, or wake().
  void wait(Nanos deadline, bool writable);
  // Ends a wait(); any thread may call it.
  void wake();

 private:
  void arm(Nanos deadline);

  int socket_;
  FileDescriptor epoll_;
  FileDescriptor timer_;
  FileDescriptor wakeup_;
  bool writable_ = false;
  Nanos armed_ = kNever;
};

}  // namespace catchment::host
