#include "ending.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace catchment::server {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Ending::Ending() {
  sigset_t endings;
  sigemptyset(&endings);
  sigaddset(&endings, SIGTERM);
  sigaddset(&endings, SIGINT);
  pthread_sigmask(SIG_BLOCK, &endings, nullptr);
  signals_ = FileDescriptor(::signalfd(-1, &endings, SFD_CLOEXEC));
  if (!signals_.valid()) {
    fail("signalfd");
  }
}

void Ending::with_owner(int pid) {
  owner_.emplace(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
  if (!owner_->valid() && errno != ESRCH) {
    fail("--owner " + std::to_string(pid));
  }
}

std::string Ending::wait() {
  if (owner_ && !owner_->valid()) {
    return "its owner had ended before";
  }
  // poll passes over a negative descriptor
  std::array<pollfd, 2> ends{pollfd{signals_.get(), POLLIN, 0},
                             pollfd{owner_ ? owner_->get() : -1, POLLIN, 0}};
  while (::poll(ends.data(), ends.size(), -1) < 0) {
    if (errno != EINTR) {
      fail("poll");
    }
  }
  return ends[0].revents != 0 ? "a signal" : "the end of its owner";
}

}  // namespace catchment::server
