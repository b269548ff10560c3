#include "peer.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "address.hpp"

namespace catchment::shm {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kFirstPause = milliseconds(1);
constexpr nanoseconds kLongestPause = milliseconds(50);
/// A caller that only looks and never waits notices a dead switch after this many looks.
constexpr unsigned kLooksPerCheck = 4096;
/// One that runs the switch's program itself notices after this.
constexpr auto kCheckEvery = milliseconds(5);
constexpr int kAllEvents = CATCHMENT_SHM_FRAMES | CATCHMENT_SHM_ROOM;
static_assert(CATCHMENT_SHM_FRAMES == int{kForFrames} && CATCHMENT_SHM_ROOM == int{kForRoom});

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    throw ShmError("cannot watch a descriptor", errno);
  }
}

}  // namespace

Peer::Peer(const std::string& path, Enter enter)
    : path_(path),
      staging_(std::make_unique<Staging>()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      own_epoll_(epoll_.get()),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      own_timer_(timer_.get()),
      enter_(std::move(enter)) {
  if (!epoll_.valid() || !timer_.valid()) {
    throw ShmError("cannot make a descriptor to wait on", errno);
  }
  static_cast<void>(address_of(path));
  watch(epoll_.get(), timer_.get());
  if (enter_) {
    bell_.emplace();
    own_bell_.emplace(bell_->descriptor());
    watch(epoll_.get(), bell_->descriptor());
  }
  connect();
  if (!attached() && hopeless_) {
    throw ShmError(why_detached_, error_);
  }
}

Peer::Peer(const std::string& path, int timeout_ms, Enter enter) : Peer(path, std::move(enter)) {
  const bool forever = timeout_ms < 0;
  const auto until = Clock::now() + milliseconds(std::max(timeout_ms, 0));
  while (!attached()) {
    const bool answered = !connecting_.valid();
    if (hopeless_ || (answered && timeout_ms == 0) ||
        (!forever && timeout_ms != 0 && Clock::now() >= until)) {
      throw ShmError(hopeless_ ? why_detached_ : CATCHMENT_SHM_TIMEOUT, error_);
    }
    // One try means until the switch has answered.
    sleep(forever ? Clock::time_point::max()
                  : std::max(until, timeout_ms == 0 ? Clock::now() + milliseconds(1000) : until));
  }
}

void Peer::connect() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    return try_again_later(CATCHMENT_SHM_SYSTEM,
                           std::string("cannot make a unix socket: ") + std::strerror(errno));
  }
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
    return try_again_later(hopeless_ ? CATCHMENT_SHM_SYSTEM : CATCHMENT_SHM_DETACHED,
                           path_ + ": no switch to attach to: " + std::strerror(error) + hint);
  }
  watch(epoll_.get(), socket.get());
  own_connection_.emplace(socket.get());
  connecting_ = std::move(socket);
  finish_connecting();
}

void Peer::finish_connecting() {
  try {
    auto answer = receive_welcome(connecting_.get());
    if (!answer) {
      return;
    }
    const auto attachment = static_cast<Attachment>(answer->welcome.attached);
    if (attachment == Attachment::refused) {
      throw ShmError(CATCHMENT_SHM_DETACHED, answer->welcome.text);
    }
    if (!answer->memory.valid()) {
      throw ShmError(CATCHMENT_SHM_CORRUPT, "the switch handed over no memory");
    }
    if (attachment == Attachment::let_in) {
      go_in(answer->welcome, std::move(answer->memory));
    } else {
      Mapping mapping = Mapping::attach(std::move(answer->memory));
      mapping.close_descriptor();
      channel_.emplace(std::move(mapping), Link(std::move(connecting_)), Side::peer);
    }
    connecting_ = FileDescriptor();
    pause_ = {};
    hopeless_ = false;
    const Mapping& memory = channel_->mapping();
    info_.cells = memory.geometry().cells;
    info_.frame_bytes = memory.geometry().cell_bytes;
    info_.epoch = memory.epoch();
    info_.switch_pid = memory.switch_pid();
    info_.attached = 1;
    ++info_.attachments;
  } catch (const ShmError& problem) {
    own_connection_.reset();
    connecting_ = FileDescriptor();
    hopeless_ = problem.status() != CATCHMENT_SHM_DETACHED;
    try_again_later(problem.status(), path_ + ": " + problem.what());
  }
}

void Peer::go_in(const Welcome& welcome, FileDescriptor memory) {
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
    channel_.emplace(std::move(entered.rings), Link(std::move(connecting_)), Side::peer);
    inside_.emplace(std::move(entered.insider));
    checked_ = Clock::now();
  } catch (const ShmError&) {
    enter_ = {};  // from now on it asks for rings
    throw ShmError(CATCHMENT_SHM_DETACHED, "this process cannot run the switch's program");
  }
}

bool Peer::attached() {
  if (channel_) {
    return true;
  }
  if (connecting_.valid()) {
    finish_connecting();
  } else {
    std::uint64_t times = 0;
    if (read(timer_.get(), &times, sizeof times) == static_cast<ssize_t>(sizeof times)) {
      connect();
    }
  }
  return channel_.has_value();
}

void Peer::let_go(catchment_shm_status status, const std::string& why) {
  if (lent_) {
    retired_ = std::move(channel_);  // the caller may still read its frames
  }
  own_connection_.reset();
  inside_.reset();
  channel_.reset();
  armed_ = 0;
  reserved_ = false;
  info_.attached = 0;
  pause_ = {};
  try_again_later(status, path_ + ": " + why);
}

void Peer::try_again_later(catchment_shm_status status, const std::string& why) {
  why_detached_ = status;
  error_ = why;
  pause_ = std::clamp<Clock::duration>(2 * pause_, kFirstPause, kLongestPause);
  set_timer(pause_);
}

void Peer::set_timer(Clock::duration after) {
  itimerspec when{};
  const auto left = duration_cast<nanoseconds>(after).count();
  when.it_value.tv_sec = left / 1'000'000'000;
  when.it_value.tv_nsec = left % 1'000'000'000;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

bool Peer::check_link() {
  idle_looks_ = 0;
  if (inside_) {
    bell_->drain();
    checked_ = Clock::now();
  }
  if (channel_->link().drain()) {
    return true;
  }
  const std::string& reason = channel_->link().reason();
  let_go(CATCHMENT_SHM_DETACHED,
         reason.empty() ? "the switch is gone" : "the switch hung up: " + reason);
  return false;
}

bool Peer::settle() {
  if (armed_ != 0) {
    const std::uint32_t events = armed_;
    armed_ = 0;
    patience_.woken(monotonic_now());
    // Awake without having been woken for this: it may be a hang-up.
    if (!channel_->disarm() || channel_->ready(events) == 0) {
      return check_link();
    }
  } else if (++idle_looks_ >= kLooksPerCheck ||
             (inside_ && Clock::now() - checked_ >= kCheckEvery)) {
    return check_link();
  }
  return true;
}

bool Peer::has_room() {
  return inside_ ? inside_->has_room(*channel_) : channel_->out().has_room();
}

void Peer::put(const Pieces& frame) {
  if (inside_) {
    inside_->put(frame, *channel_);
  } else {
    channel_->out().put(frame);
  }
}

void Peer::publish() {
  if (inside_) {
    inside_->publish(*channel_);
  } else {
    channel_->publish();
  }
}

int Peer::faulty() {
  if (!channel_->fault()) {
    return CATCHMENT_SHM_OK;
  }
  const std::string why = "the switch's ring is corrupt: " + channel_->fault().text();
  channel_->link().farewell(why);
  let_go(CATCHMENT_SHM_CORRUPT, why);
  return CATCHMENT_SHM_CORRUPT;
}

bool Peer::ours() {
  if (fork_guard_.in_child()) {
    error_ = path_ + ": the port was attached before fork(): attach in the child";
  }
  return !fork_guard_.in_child();
}

int Peer::refuse(const std::string& why) {
  error_ = why;
  return CATCHMENT_SHM_ARGUMENT;
}

bool Peer::known(int events) {
  if ((events & ~kAllEvents) != 0 || events == 0) {
    error_ = "events " + std::to_string(events) + ": give FRAMES, ROOM, or their sum";
    return false;
  }
  return true;
}

int Peer::send(const catchment_shm_frame* frames, int count) {
  if (count < 0 || (count > 0 && frames == nullptr)) {
    return refuse("send needs frames and how many they are");
  }
  if (!attached() || !settle()) {
    return CATCHMENT_SHM_DETACHED;
  }
  reserved_ = false;
  int done = 0;
  for (; done < count; ++done) {
    const catchment_shm_frame& frame = frames[done];
    if (frame.data == nullptr || frame.length == 0 || frame.length > info_.frame_bytes) {
      if (done != 0) {
        break;
      }
      return refuse("a frame of " + std::to_string(frame.length) + " bytes: 1 to " +
                    std::to_string(info_.frame_bytes) + " fit");
    }
    if (!has_room()) {
      break;
    }
    put({.head = {}, .body = {static_cast<const std::uint8_t*>(frame.data), frame.length}});
  }
  publish();
  info_.sent += static_cast<std::uint64_t>(done);
  if (const int status = faulty(); status != CATCHMENT_SHM_OK) {
    return status;
  }
  return done;
}

int Peer::receive(catchment_shm_frame* frames, int count) {
  const int done =
      incoming(frames, count, [](std::span<const std::uint8_t> cell, catchment_shm_frame& frame) {
        if (cell.size() > frame.room) {
          return false;
        }
        std::memcpy(frame.data, cell.data(), cell.size());
        return true;
      });
  give_back();
  return done;
}

int Peer::peek(catchment_shm_frame* frames, int count) {
  give_back();
  const int done =
      incoming(frames, count, [](std::span<std::uint8_t> cell, catchment_shm_frame& frame) {
        frame.data = cell.data();
        frame.room = static_cast<std::uint32_t>(cell.size());
        return true;
      });
  lent_ = done > 0;
  return done;
}

void Peer::give_back() {
  lent_ = false;
  retired_.reset();
  if (channel_) {
    channel_->release();
  }
}

template <class Handover>
int Peer::incoming(catchment_shm_frame* frames, int count, Handover hand_over) {
  if (count < 0 || (count > 0 && frames == nullptr)) {
    return refuse("receive needs room for frames and for how many");
  }
  if (!attached() || !settle()) {
    return CATCHMENT_SHM_DETACHED;
  }
  Consumer& in = channel_->in();
  int done = 0;
  for (std::uint32_t waiting = in.available(); waiting != 0 && done < count; --waiting) {
    catchment_shm_frame& frame = frames[done];
    const std::span<std::uint8_t> cell = in.next();
    if (cell.empty()) {
      break;
    }
    if (!hand_over(cell, frame)) {
      ++info_.too_long;
      continue;
    }
    frame.length = static_cast<std::uint32_t>(cell.size());
    ++done;
  }
  info_.received += static_cast<std::uint64_t>(done);
  if (done == 0) {
    return faulty();
  }
  idle_looks_ = 0;
  return done;
}

void* Peer::reserve() {
  if (!attached() || !settle()) {
    return nullptr;
  }
  reserved_ = has_room();
  if (!reserved_) {
    faulty();
    return nullptr;
  }
  return staging_->bytes.data();
}

int Peer::commit(std::uint32_t length, std::span<const std::uint8_t> rest) {
  if (!channel_) {
    return CATCHMENT_SHM_DETACHED;
  }
  const std::size_t bytes = length + rest.size();
  if (!reserved_ || length == 0 || bytes > info_.frame_bytes) {
    return refuse(reserved_ ? "a frame of " + std::to_string(bytes) + " bytes: 1 to " +
                                  std::to_string(info_.frame_bytes) + " fit"
                            : "commit without reserve");
  }
  std::uint8_t* const staged = staging_->bytes.data();
  if (length % kLine == 0) {
    put({.head = {staged, length}, .body = rest});
  } else {
    std::ranges::copy(rest, staged + length);
    put({.head = {}, .body = {staged, bytes}});
  }
  reserved_ = false;
  ++info_.sent;
  return CATCHMENT_SHM_OK;
}

int Peer::flush() {
  if (!attached()) {
    return CATCHMENT_SHM_DETACHED;
  }
  publish();
  return CATCHMENT_SHM_OK;
}

int Peer::arm(int events) {
  if (!known(events)) {
    return CATCHMENT_SHM_ARGUMENT;
  }
  if (!attached()) {
    return CATCHMENT_SHM_OK;  // the descriptor tells when there is something to do
  }
  armed_ = static_cast<std::uint32_t>(events);
  const std::uint32_t there = channel_->arm(armed_);
  if (there == 0 && channel_->fault()) {
    return faulty();
  }
  return static_cast<int>(there);
}

void Peer::sleep(Clock::time_point until) {
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

int Peer::wait(int events, std::int64_t timeout_us) {
  if (!known(events)) {
    return CATCHMENT_SHM_ARGUMENT;
  }
  const auto wanted = static_cast<std::uint32_t>(events);
  const bool forever = timeout_us < 0;
  const auto most =
      std::chrono::microseconds(std::min<std::int64_t>(timeout_us, std::int64_t{1} << 40));
  const auto until = forever ? Clock::time_point::max() : Clock::now() + most;
  while (true) {
    if (attached() && settle()) {
      if (timeout_us == 0 ||
          spin_until(patience_,
                     [&] { return channel_->ready(wanted) != 0 || channel_->fault(); }) ||
          channel_->fault()) {
        const std::uint32_t there = channel_->ready(wanted);
        if (there != 0) {
          return static_cast<int>(there);
        }
        if (const int status = faulty(); status != CATCHMENT_SHM_OK) {
          return status;
        }
      } else if (const int there = arm(events); there != CATCHMENT_SHM_OK) {
        return there;
      }
    }
    if (!forever && Clock::now() >= until) {
      return channel_ ? CATCHMENT_SHM_TIMEOUT : CATCHMENT_SHM_DETACHED;
    }
    sleep(until);
  }
}

int Peer::look(int events, const int* stop) {
  if (!known(events)) {
    return CATCHMENT_SHM_ARGUMENT;
  }
  if (!channel_) {
    return CATCHMENT_SHM_OK;
  }
  const auto wanted = static_cast<std::uint32_t>(events);
  spin_until(patience_, [&] {
    return channel_->ready(wanted) != 0 || channel_->fault() ||
           (stop != nullptr && __atomic_load_n(stop, __ATOMIC_ACQUIRE) != 0);
  });
  return static_cast<int>(channel_->ready(wanted));
}

int Peer::check() {
  if (!attached()) {
    return CATCHMENT_SHM_DETACHED;
  }
  if (!check_link()) {
    return CATCHMENT_SHM_DETACHED;
  }
  return faulty();
}

catchment_shm_info Peer::info() const { return info_; }

}  // namespace catchment::shm
