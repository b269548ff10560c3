#include "poller.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace catchment::host {
namespace {

void control(int epoll, int operation, int descriptor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  if (epoll_ctl(epoll, operation, descriptor, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

void empty(int descriptor) {
  std::uint64_t count = 0;
  // Nothing to read is as good as read.
  [[maybe_unused]] const ssize_t size = read(descriptor, &count, sizeof count);
}

}  // namespace

Poller::Poller(int socket)
    : socket_(socket),
      epoll_(epoll_create1(EPOLL_CLOEXEC), "epoll_create1"),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create"),
      wakeup_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd") {
  control(epoll_.get(), EPOLL_CTL_ADD, socket_, EPOLLIN);
  control(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), EPOLLIN);
  control(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), EPOLLIN);
}

void Poller::arm(Nanos deadline) {
  if (deadline >= armed_) return;  // it wakes early enough; the next wait arms the rest
  itimerspec when{};
  const Nanos at = std::max<Nanos>(deadline, 1);  // 0 would disarm
  when.it_value.tv_sec = at / kSecond;
  when.it_value.tv_nsec = at % kSecond;
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
  armed_ = deadline;
}

void Poller::wait(Nanos deadline, bool writable) {
  arm(deadline);
  if (writable != writable_) {
    control(epoll_.get(), EPOLL_CTL_MOD, socket_, EPOLLIN | (writable ? EPOLLOUT : 0U));
    writable_ = writable;
  }
  std::array<epoll_event, 3> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
  for (int i = 0; i < count; ++i) {
    const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
    if (descriptor == socket_) continue;
    empty(descriptor);
    if (descriptor == timer_.get()) armed_ = kNever;
  }
}

void Poller::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(wakeup_.get(), &one, sizeof one);
}

}  // namespace catchment::host
