#include "packet_worker.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace catchment::softswitch {

namespace {

constexpr std::size_t kQueueFrames = 1024;  // per port, then dropped as tx_full
/// Bytes of frames from memory that come in between two times of copying out what they made.
constexpr std::size_t kBytesAtOnce = 32 * 1024;
constexpr auto kTick = std::chrono::milliseconds(50);
/// Batches of one port before the others have their turn.
constexpr int kBatchesPerTurn = 8;
/// Turns of a busy polled port between two looks at all the others.
constexpr int kTurnsPerWait = 8;
constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};
constexpr std::uint64_t kLinkTag = kWakeTag - 1;

timespec to_timespec(std::chrono::nanoseconds wait) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
  return {.tv_sec = seconds.count(), .tv_nsec = (wait - seconds).count()};
}

void watch_at(int epoll, int fd, std::uint32_t events, std::uint64_t tag, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  static_cast<void>(epoll_ctl(epoll, operation, fd, &event));
}

}  // namespace

PacketWorker::PacketWorker(Switchboard& board, std::size_t index,
                           std::function<void(std::size_t)> wake_owner)
    : board_(board),
      index_(index),
      wake_owner_(std::move(wake_owner)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      last_frame_(monotonic_now() - kSwitchPatience.spin) {
  watch(wake_.get(), EPOLLIN, kWakeTag, EPOLL_CTL_ADD);
  if (links_.descriptor() >= 0) {
    watch(links_.descriptor(), EPOLLIN, kLinkTag, EPOLL_CTL_ADD);
  }
}

void PacketWorker::adopt(Slot& slot) {
  slot.owner = index_;
  slot.epoll = epoll_.get();
  rewatch(slot);
  owned_.push_back(&slot);
  refresh();
}

void PacketWorker::forget(Slot& slot) {
  clear_queue(slot);
  std::erase(owned_, &slot);
  refresh();
}

void PacketWorker::refresh() {
  polled_.clear();
  faulty_.clear();
  for (Slot* slot : owned_) {
    if (slot->port->polled()) {
      polled_.push_back(slot);
    }
    if (slot->faults != nullptr) {
      faulty_.push_back(slot);
    }
  }
}

void PacketWorker::run() {
  std::array<epoll_event, 64> events;
  auto next_tick = Clock::now();
  int turns = 0;
  while (!board_.stopped.load(std::memory_order_relaxed)) {
    int count = 0;
    if (++turns >= kTurnsPerWait || !polled_frames_) {
      turns = 0;
      const timespec timeout = to_timespec(wait_at_most());
      count = epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &timeout,
                           nullptr);
    }
    {
      const Turns::Turn turn(board_.turns);
      woken_frames_ = false;
      // What an interrupted turn leaves out is reported again by the next wait.
      for (int i = 0; i < count && !board_.interrupted(); ++i) {
        serve(events[static_cast<std::size_t>(i)]);
      }
      poll();
      serve_held();
      flush_all();
      show_all();
    }
    const auto now = Clock::now();
    if (woken_frames_ || polled_frames_) {
      last_frame_ = monotonic(now);
    } else if (patience_.next(last_frame_, monotonic(now)) == Waiting::kYield) {
      patience_.yield(monotonic(now));  // a peer may be waiting for this processor
    }
    if (now >= next_tick) {
      next_tick = now + kTick;
      tick();
    }
  }
}

void PacketWorker::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
}

void PacketWorker::packet_out(std::string frame) {
  {
    const std::lock_guard lock(packet_out_mutex_);
    packet_outs_.push_back(std::move(frame));
  }
  wake();
}

std::chrono::nanoseconds PacketWorker::wait_at_most() {
  const Turns::Turn turn(board_.turns);
  std::chrono::nanoseconds wait = kTick;
  if (!faulty_.empty()) {
    const auto now = Clock::now();
    for (Slot* slot : faulty_) {
      auto due = slot->faults->due_in();
      {
        const std::lock_guard lock(slot->sending);
        due = std::min(due, slot->faults->due_out());
      }
      wait = std::min(wait, std::max(due, now) - now);
    }
  }
  if (wait.count() == 0) {
    return wait;
  }
  if (patience_.next(last_frame_, monotonic_now()) != Waiting::kSleep) {
    return {};
  }
  for (Slot* slot : polled_) {
    if (!slot->port->arm()) {
      return {};
    }
  }
  return wait;
}

void PacketWorker::tick() {
  {
    const Turns::Turn turn(board_.turns);
    check_links();
  }
  if (index_ == 0) {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    board_.dataplane.expire_idle(
        std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count());
  }
}

void PacketWorker::serve(const epoll_event& event) {
  if (event.data.u64 == kWakeTag) {
    std::uint64_t ignored = 0;
    static_cast<void>(::read(wake_.get(), &ignored, sizeof ignored));
    run_packet_outs();
    for (Slot* slot : owned_) {
      if (slot->failed.exchange(false)) {
        check_link(*slot, 0);
      }
    }
    return;
  }
  if (event.data.u64 == kLinkTag) {
    links_.drain();
    check_links();
    return;
  }
  Slot* slot = board_.slots[event.data.u64 % rt::kPorts].get();
  if (slot == nullptr || slot->owner != index_) {
    return;
  }
  if ((event.events & EPOLLOUT) != 0) {
    const std::lock_guard lock(slot->sending);
    slot->waits_for_room = false;
    watch(slot->watched, EPOLLIN, slot->number, EPOLL_CTL_MOD);
    touched_.push_back(slot);
  }
  if (slot->port->polled()) {
    check_link(*slot, 0);  // woken up, or the peer came or went
  } else {
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) {
      check_link(*slot, 0);
    }
    // The last one gives back what the one before handed out: without it, a port that lends its
    // memory would say at once that there is more.
    for (int batches = 0; batches < kBatchesPerTurn && receive(*slot); ++batches) {
      woken_frames_ = true;
      if (board_.interrupted()) {
        break;
      }
    }
  }
}

void PacketWorker::poll() {
  polled_frames_ = false;
  for (Slot* slot : polled_) {
    if (board_.interrupted()) {
      polled_frames_ = true;  // the others may have frames
      return;
    }
    {
      const std::lock_guard lock(slot->sending);
      slot->waits_for_room = false;
      if (slot->queued() > 0) {
        touched_.push_back(slot);
      }
    }
    polled_frames_ |= receive(*slot);
  }
}

/// Frames that faults held and whose time has come.
void PacketWorker::serve_held() {
  if (faulty_.empty()) {
    return;
  }
  const auto now = Clock::now();
  for (Slot* slot : faulty_) {
    if (slot->faults->due_in() <= now) {
      receive(*slot);
    }
    const std::lock_guard lock(slot->sending);
    if (slot->faults->due_out() <= now) {
      send(*slot);
    }
  }
}

/// Whether frames came.
bool PacketWorker::receive(Slot& slot) {
  frames_.clear();
  const Received got = slot.port->receive(frames_);
  board_.tell(slot, got.notice);
  if (got.error != 0) {
    check_link(slot, got.error);
    return false;
  }
  if (got.too_long > 0) {
    board_.packets.count_drops(slot.number, DropCause::too_long, got.too_long);
  }
  if (got.frames == 0) {
    return false;
  }
  // What comes through memory is copied out while it is in the nearest cache, and shown to its
  // receivers at the end of the turn: they are woken for a batch. The kernel takes many at once.
  const std::size_t at_once = slot.port->polled() ? kBytesAtOnce : SIZE_MAX;
  std::size_t begin = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    bytes += frames_[i].length;
    if (bytes >= at_once || i + 1 == frames_.size()) {
      run_program({&frames_[begin], i + 1 - begin});
      if (at_once != SIZE_MAX) {
        flush_all();
      }
      begin = i + 1;
      bytes = 0;
    }
  }
  return true;
}

void PacketWorker::run_packet_outs() {
  std::vector<std::string> frames;
  {
    const std::lock_guard lock(packet_out_mutex_);
    frames.swap(packet_outs_);
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (board_.interrupted()) {
      put_back(std::span(frames).subspan(i));
      return;
    }
    const std::string& frame = frames[i];
    const rt::InputFrame input{reinterpret_cast<const std::uint8_t*>(frame.data()),
                               static_cast<std::uint32_t>(frame.size()),
                               board_.dataplane.options().cpu_port};
    run_program({&input, 1});
  }
}

/// Packet-outs that an interrupted turn did not come to; they stay the first.
void PacketWorker::put_back(std::span<std::string> frames) {
  {
    const std::lock_guard lock(packet_out_mutex_);
    packet_outs_.insert(packet_outs_.begin(), std::make_move_iterator(frames.begin()),
                        std::make_move_iterator(frames.end()));
  }
  wake();
}

void PacketWorker::run_program(std::span<const rt::InputFrame> frames) {
  out_.clear();
  board_.packets.process(frames, out_);
  for (const rt::OutFrame& frame : out_) {
    queue(frame);
  }
}

void PacketWorker::queue(const rt::OutFrame& frame) {
  Slot* slot = frame.port < board_.slots.size() ? board_.slots[frame.port].get() : nullptr;
  if (slot == nullptr) {
    board_.packets.dropped(frame.port, DropCause::no_such_port, {&frame, 1});
    return;
  }
  const std::lock_guard lock(slot->sending);
  if (slot->queued() >= kQueueFrames) {
    board_.packets.dropped(frame.port, DropCause::tx_full, {&frame, 1});
    return;
  }
  slot->queue.push_back(frame);
  if (touched_.empty() || touched_.back() != slot) {
    touched_.push_back(slot);
  }
}

void PacketWorker::flush_all() {
  for (Slot* slot : touched_) {
    flush(*slot);
  }
  touched_.clear();
}

/// What flush() has copied into memory since the last time.
void PacketWorker::show_all() {
  for (Slot* slot : unshown_) {
    const std::lock_guard lock(slot->sending);
    slot->port->show();
  }
  unshown_.clear();
}

void PacketWorker::flush(Slot& slot) {
  const std::lock_guard lock(slot.sending);
  while (slot.queued() > 0 && !slot.waits_for_room) {
    send(slot);
  }
}

/// One batch; the caller has slot.sending.
void PacketWorker::send(Slot& slot) {
  const std::span<const rt::OutFrame> frames(slot.queue.data() + slot.queue_head, slot.queued());
  const Sent sent = slot.port->send(frames);
  if (slot.port->polled() && std::ranges::find(unshown_, &slot) == unshown_.end()) {
    unshown_.push_back(&slot);
  }
  board_.packets.sent(slot.number, sent.delivered, sent.bytes, frames.first(sent.frames));
  slot.queue_head += sent.frames;
  if (slot.queued() == 0) {
    slot.queue.clear();
    slot.queue_head = 0;
  } else if (slot.queue_head >= kQueueFrames) {
    slot.queue.erase(slot.queue.begin(),
                     slot.queue.begin() + static_cast<std::ptrdiff_t>(slot.queue_head));
    slot.queue_head = 0;
  }
  if (sent.refused > 0) {
    board_.packets.count_drops(slot.number, DropCause::tx_full, sent.refused);
  }
  if (sent.too_long > 0) {
    board_.packets.count_drops(slot.number, DropCause::too_long, sent.too_long);
  }
  if (sent.full) {
    slot.waits_for_room = true;
    if (!slot.port->polled()) {
      watch_at(slot.epoll, slot.watched, EPOLLIN | EPOLLOUT, slot.number, EPOLL_CTL_MOD);
    } else if (slot.owner != index_) {
      wake_owner_(slot.owner);  // it arms the port before it sleeps
    }
  }
  if (sent.error != 0) {
    clear_queue(slot);
    slot.failed.store(true);
    wake_owner_(slot.owner);
  }
}

/// The caller has slot.sending, or is alone.
void PacketWorker::clear_queue(Slot& slot) {
  board_.packets.dropped(slot.number, DropCause::no_such_port,
                         {slot.queue.data() + slot.queue_head, slot.queued()});
  slot.queue.clear();
  slot.queue_head = 0;
}

void PacketWorker::watch(int fd, std::uint32_t events, std::uint64_t tag, int operation) const {
  watch_at(epoll_.get(), fd, events, tag, operation);
}

/// After a port may have a new descriptor, perhaps of the old number; a closed one left epoll by
/// itself, and one that is there already stays.
void PacketWorker::rewatch(Slot& slot) {
  slot.watched = slot.port->descriptor();
  slot.waits_for_room = false;
  if (slot.watched >= 0) {
    watch(slot.watched, EPOLLIN, slot.number, EPOLL_CTL_ADD);
  }
}

void PacketWorker::check_links() {
  for (Slot* slot : owned_) {
    check_link(*slot, 0);
  }
}

/// `error`: what made us look, 0 for none.
void PacketWorker::check_link(Slot& slot, int error) {
  std::string news;
  bool up = false;
  {
    const std::lock_guard lock(slot.sending);  // a port may open anew
    news = slot.port->check_link();
    if (news.empty()) {
      return;
    }
    rewatch(slot);
    up = slot.port->up();
    if (!up) {
      clear_queue(slot);
    }
  }
  board_.tell(slot, error == 0 ? news : news + " (" + std::strerror(error) + ")");
  board_.dataplane.set_port_up(slot.number, up);
}

}  // namespace catchment::softswitch
