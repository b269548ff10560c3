#include "peer.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace catchment::shm {

namespace {

using std::chrono::milliseconds;

/// A caller that only looks and never waits notices a dead switch after this many looks.
constexpr unsigned kLooksPerCheck = 4096;
/// One that runs the switch's program itself notices after this.
constexpr Nanos kCheckEvery = 5 * kMillisecond;
/// One try lasts until the switch has answered. One that is stopped never does.
constexpr milliseconds kAnswer(5000);
constexpr int kAllEvents = CATCHMENT_SHM_FRAMES | CATCHMENT_SHM_ROOM;
static_assert(CATCHMENT_SHM_FRAMES == int{kForFrames} && CATCHMENT_SHM_ROOM == int{kForRoom});

}  // namespace

Peer::Peer(const std::string& path, Enter enter)
    : path_(path), staging_(std::make_unique<Staging>()), connector_(path, std::move(enter)) {
  if (!attached() && connector_.hopeless()) {
    throw ShmError(connector_.status(), error_);
  }
}

Peer::Peer(const std::string& path, int timeout_ms, Enter enter) : Peer(path, std::move(enter)) {
  const bool forever = timeout_ms < 0;
  const bool once = timeout_ms == 0;
  const auto until = Clock::now() + (once ? kAnswer : milliseconds(std::max(timeout_ms, 0)));
  while (!attached()) {
    const bool answered = !connector_.asking();
    if (connector_.hopeless() || (answered && once) || (!forever && Clock::now() >= until)) {
      throw ShmError(connector_.hopeless() ? connector_.status() : CATCHMENT_SHM_TIMEOUT, error_);
    }
    connector_.sleep(forever ? Clock::time_point::max() : until);
  }
}

bool Peer::attach() {
  std::optional<Attached> made = connector_.step();
  if (!made) {
    error_ = connector_.why();
    return false;
  }
  channel_.emplace(std::move(made->channel));
  inside_ = std::move(made->inside);
  checked_ = coarse_now();
  const Mapping& memory = channel_->mapping();
  info_.cells = memory.geometry().cells;
  info_.frame_bytes = memory.geometry().cell_bytes;
  info_.epoch = memory.epoch();
  info_.switch_pid = memory.switch_pid();
  info_.attached = 1;
  ++info_.attachments;
  return true;
}

void Peer::let_go(catchment_shm_status status, const std::string& why) {
  connector_.lost(status, why);
  error_ = connector_.why();
  // Of what was attached since, nothing is lent: to look there gives back what was lent before.
  if (lent_ && !retired_) {
    retired_ = std::move(*channel_).retire();
  }
  inside_.reset();
  channel_.reset();
  armed_ = 0;
  reserved_ = false;
  info_.attached = 0;
}

bool Peer::check_link() {
  idle_looks_ = 0;
  if (inside_) {
    connector_.drain_bell();
    checked_ = coarse_now();
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
             (inside_ && coarse_now() - checked_ >= kCheckEvery)) {
    return check_link();
  }
  return true;
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

bool Peer::refuse_child() {
  error_ = path_ + ": the port was attached before fork(): attach in the child";
  return false;
}

int Peer::refuse(const std::string& why) {
  error_ = why;
  return CATCHMENT_SHM_ARGUMENT;
}

int Peer::fail(const char* what) noexcept {
  try {
    error_ = path_ + ": " + what;
  } catch (const std::exception&) {
    error_.clear();  // there is no memory for a text either
  }
  return CATCHMENT_SHM_SYSTEM;
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
  lent_ = taken_early_ = false;
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
  int done = 0;
  for (std::uint32_t waiting = channel_->available(); waiting != 0 && done < count; --waiting) {
    catchment_shm_frame& frame = frames[done];
    const std::span<std::uint8_t> cell = channel_->next();
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
  // Who has frames to run has looked at the link when the first of them was begun.
  const bool begun = inside_ && !inside_->empty();
  if (!attached() || (!begun && !settle())) {
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
  const std::size_t bytes = length + rest.size();
  if (const int status = check_commit(length, bytes); status != CATCHMENT_SHM_OK) {
    return status;
  }
  std::uint8_t* const staged = staging_->bytes.data();
  if (length % kLine == 0) {
    put({.head = {staged, length}, .body = rest});
  } else {
    std::ranges::copy(rest, staged + length);
    put({.head = {}, .body = {staged, bytes}});
  }
  return committed();
}

int Peer::commit_in_place(std::span<const std::uint8_t> frame) {
  if (const int status = check_commit(frame.size(), frame.size()); status != CATCHMENT_SHM_OK) {
    return status;
  }
  if (inside_) {
    inside_->put_in_place(frame, *channel_);
  } else {
    channel_->out().put({.head = {}, .body = frame});
  }
  return committed();
}

int Peer::check_commit(std::size_t begun, std::size_t bytes) {
  if (!channel_) {
    return CATCHMENT_SHM_DETACHED;
  }
  if (!reserved_ || begun == 0 || bytes > info_.frame_bytes) {
    return refuse(reserved_ ? "a frame of " + std::to_string(bytes) + " bytes: 1 to " +
                                  std::to_string(info_.frame_bytes) + " fit"
                            : "commit without reserve");
  }
  return CATCHMENT_SHM_OK;
}

int Peer::committed() {
  reserved_ = false;
  ++info_.sent;
  return CATCHMENT_SHM_OK;
}

std::span<const std::uint8_t> Peer::own_frame() {
  if (std::exchange(taken_early_, false)) {
    give_back();
  }
  return channel_ ? channel_->own().front() : std::span<std::uint8_t>{};
}

void Peer::take_own() {
  channel_->own().take();
  ++info_.received;
  taken_early_ = !lent_;
  lent_ = true;
}

int Peer::flush() {
  if (!attached()) {
    return CATCHMENT_SHM_DETACHED;
  }
  publish();
  return CATCHMENT_SHM_OK;
}

int Peer::flush_if_free() {
  if (inside_ && attached()) {
    return inside_->publish_if_free(*channel_) ? 1 : 0;
  }
  const int status = flush();
  return status == CATCHMENT_SHM_OK ? 1 : status;
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
    connector_.sleep(until);
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
