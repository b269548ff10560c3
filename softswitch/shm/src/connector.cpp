#include "catchment/shm/connector.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "unix_socket.hpp"

namespace catchment::shm {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kFirstPause = milliseconds(1);
constexpr nanoseconds kLongestPause = milliseconds(50);

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    throw ShmError("cannot watch a descriptor", errno);
  }
}

}  // namespace

Connector::Connector(std::string path, Enter enter)
    : path_(std::move(path)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      own_epoll_(epoll_.get()),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      own_timer_(timer_.get()),
      enter_(std::move(enter)),
      why_(path_ + ": who listens there has not answered; is the switch stopped?") {
  if (!epoll_.valid() || !timer_.valid()) {
    throw ShmError("cannot make a descriptor to wait on", errno);
  }
  static_cast<void>(address_of(path_));
  watch(epoll_.get(), timer_.get());
  if (enter_) {
    bell_.emplace();
    own_bell_.emplace(bell_->descriptor());
    watch(epoll_.get(), bell_->descriptor());
  }
  ask();
}

void Connector::ask() {
  try {
    connect();
  } catch (const ShmError& problem) {
    lost(problem.status(), problem.what());
  } catch (const std::exception& problem) {
    lost(CATCHMENT_SHM_SYSTEM, problem.what());
  }
}

void Connector::connect() {
  FileDescriptor socket = unix_socket(SOCK_STREAM);
  if (enter_) {
    bell_->lend_name(socket.get());
  }
  const sockaddr_un address = address_of(path_);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    hopeless_ = error != ENOENT && error != ECONNREFUSED && error != EAGAIN;
    const char* const hint = error == ENOENT || error == ECONNREFUSED
                                 ? "; is a switch running with --port N=shm:PATH?"
                                 : "";
    return lost(hopeless_ ? CATCHMENT_SHM_SYSTEM : CATCHMENT_SHM_DETACHED,
                "no switch to attach to: " + std::string(std::strerror(error)) + hint);
  }
  watch(epoll_.get(), socket.get());
  own_connection_.emplace(socket.get());
  connecting_ = std::move(socket);
}

std::optional<Attached> Connector::step() {
  if (!asking()) {
    std::uint64_t times = 0;
    if (read(timer_.get(), &times, sizeof times) == static_cast<ssize_t>(sizeof times)) {
      ask();
    }
  }
  return asking() ? take_answer() : std::nullopt;
}

std::optional<Attached> Connector::take_answer() {
  try {
    auto answer = receive_welcome(connecting_.get());
    if (!answer) {
      return std::nullopt;
    }
    const auto attachment = static_cast<Attachment>(answer->welcome.attached);
    if (attachment == Attachment::refused) {
      throw ShmError(CATCHMENT_SHM_DETACHED, answer->welcome.text);
    }
    if (!answer->memory.valid()) {
      throw ShmError(CATCHMENT_SHM_CORRUPT, "the switch handed over no memory");
    }
    if (attachment == Attachment::let_in) {
      Attached made = go_in(answer->welcome, std::move(answer->memory));
      pause_ = {};
      hopeless_ = false;
      return made;
    }
    Mapping mapping = Mapping::attach(std::move(answer->memory));
    mapping.close_descriptor();
    pause_ = {};
    hopeless_ = false;
    return Attached{Channel(std::move(mapping), Link(std::move(connecting_)), Side::peer), {}};
  } catch (const ShmError& problem) {
    hopeless_ = problem.status() != CATCHMENT_SHM_DETACHED;
    lost(problem.status(), problem.what());
  } catch (const std::exception& problem) {
    lost(CATCHMENT_SHM_SYSTEM, problem.what());
  }
  return std::nullopt;
}

Attached Connector::go_in(const Welcome& welcome, FileDescriptor memory) {
  try {
    const std::string_view text(welcome.text);
    std::uint32_t port = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    ucred who{};
    socklen_t size = sizeof who;
    // It can do to this process what the program can that it hands over.
    if (!enter_ || error != std::errc() ||
        getsockopt(connecting_.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
        who.uid != geteuid()) {
      throw ShmError(CATCHMENT_SHM_DETACHED, "the switch of another user is not run here");
    }
    Entered entered = enter_({std::move(memory), who.pid, port});
    return {Channel(std::move(entered.rings), Link(std::move(connecting_)), Side::peer),
            InsideWay(std::move(entered.insider))};
  } catch (const ShmError&) {
    enter_ = {};  // from now on it asks for rings
    throw ShmError(CATCHMENT_SHM_DETACHED, "this process cannot run the switch's program");
  }
}

void Connector::lost(catchment_shm_status status, const std::string& why) {
  own_connection_.reset();
  connecting_ = FileDescriptor();
  status_ = status;
  why_ = path_ + ": " + why;
  pause_ = std::clamp<Clock::duration>(2 * pause_, kFirstPause, kLongestPause);
  set_timer(pause_);
}

void Connector::set_timer(Clock::duration after) const {
  itimerspec when{};
  const auto left = duration_cast<nanoseconds>(after).count();
  when.it_value.tv_sec = left / 1'000'000'000;
  when.it_value.tv_nsec = left % 1'000'000'000;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void Connector::sleep(Clock::time_point until) const {
  int left_ms = -1;
  if (until != Clock::time_point::max()) {
    const auto left = std::max(until - Clock::now(), Clock::duration::zero());
    // Rounded up: the caller looks at the clock again.
    left_ms = static_cast<int>(std::min<std::int64_t>(
        duration_cast<milliseconds>(left + milliseconds(1) - nanoseconds(1)).count(), 1 << 30));
  }
  epoll_event event{};
  static_cast<void>(epoll_wait(epoll_.get(), &event, 1, left_ms));
}

}  // namespace catchment::shm
