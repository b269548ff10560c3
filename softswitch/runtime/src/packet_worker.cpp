#include "packet_worker.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace catchment::softswitch {

namespace {

constexpr std::size_t kQueueFrames = 1024;  // per port, then dropped as tx_full
constexpr std::size_t kMostPacketOutBytes = std::size_t{16} << 20;  // that wait
constexpr std::size_t kPacketOutBytes = 64;                         // of one, beside its frame
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

void PacketWorker::adopt(SwitchPort& port) {
  port.owner = index_;
  port.epoll = epoll_.get();
  rewatch(port);
  owned_.push_back(&port);
  refresh();
}

void PacketWorker::refresh() {
  polled_.clear();
  faulty_.clear();
  for (SwitchPort* port : owned_) {
    if (port->device->polled()) {
      polled_.push_back(port);
    }
    if (port->faults != nullptr) {
      faulty_.push_back(port);
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

bool PacketWorker::packet_out(std::string frame) {
  {
    const std::lock_guard lock(packet_out_mutex_);
    const std::size_t bytes = packet_out_bytes_ + frame.size() + kPacketOutBytes;
    if (!packet_outs_.empty() && bytes > kMostPacketOutBytes) {
      return false;
    }
    packet_out_bytes_ = bytes;
    packet_outs_.push_back(std::move(frame));
  }
  wake();
  return true;
}

std::chrono::nanoseconds PacketWorker::wait_at_most() {
  const Turns::Turn turn(board_.turns);
  std::chrono::nanoseconds wait = kTick;
  if (!faulty_.empty()) {
    const auto now = Clock::now();
    for (SwitchPort* port : faulty_) {
      auto due = port->faults->due_in();
      {
        const std::lock_guard lock(port->sending);
        due = std::min(due, port->faults->due_out());
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
  for (SwitchPort* port : polled_) {
    if (!port->device->arm()) {
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
    for (SwitchPort* port : owned_) {
      if (port->failed.exchange(false)) {
        check_link(*port, 0);
      }
    }
    return;
  }
  if (event.data.u64 == kLinkTag) {
    links_.drain();
    check_links();
    return;
  }
  SwitchPort* port = board_.ports[event.data.u64 % rt::kPorts].get();
  if (port == nullptr || port->owner != index_) {
    return;
  }
  if ((event.events & EPOLLOUT) != 0) {
    const std::lock_guard lock(port->sending);
    port->waits_for_room = false;
    watch(port->watched, EPOLLIN, port->number, EPOLL_CTL_MOD);
    touched_.push_back(port);
  }
  if (port->device->polled()) {
    check_link(*port, 0);  // woken up, or the peer came or went
  } else {
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) {
      check_link(*port, 0);
    }
    // The last one gives back what the one before handed out: without it, a port that lends its
    // memory would say at once that there is more.
    for (int batches = 0; batches < kBatchesPerTurn && receive(*port); ++batches) {
      woken_frames_ = true;
      if (board_.interrupted()) {
        break;
      }
    }
  }
}

void PacketWorker::poll() {
  polled_frames_ = false;
  for (SwitchPort* port : polled_) {
    if (board_.interrupted()) {
      polled_frames_ = true;  // the others may have frames
      return;
    }
    {
      const std::lock_guard lock(port->sending);
      port->waits_for_room = false;
      if (port->queued() > 0) {
        touched_.push_back(port);
      }
    }
    polled_frames_ |= receive(*port);
  }
}

/// Frames that faults held and whose time has come.
void PacketWorker::serve_held() {
  if (faulty_.empty()) {
    return;
  }
  const auto now = Clock::now();
  for (SwitchPort* port : faulty_) {
    if (port->faults->due_in() <= now) {
      receive(*port);
    }
    const std::lock_guard lock(port->sending);
    if (port->faults->due_out() <= now) {
      send(*port);
    }
  }
}

/// Whether frames came.
bool PacketWorker::receive(SwitchPort& port) {
  frames_.clear();
  const Received got = port.device->receive(frames_);
  board_.tell(port, got.notice);
  if (got.error != 0) {
    check_link(port, got.error);
    return false;
  }
  if (got.too_long > 0) {
    board_.packets.count_drops(port.number, DropCause::too_long, got.too_long);
  }
  if (!got.passed_on.empty()) {
    out_.clear();
    board_.packets.take_over(got.passed_on, out_);
    for (const rt::OutFrame& frame : out_) {
      queue(frame);
    }
  }
  if (got.frames == 0) {
    return !got.passed_on.empty();
  }
  // What comes through memory is copied out while it is in the nearest cache, and shown to its
  // receivers at the end of the turn: they are woken for a batch. The kernel takes many at once.
  const std::size_t at_once = port.device->polled() ? kBytesAtOnce : SIZE_MAX;
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
    packet_out_bytes_ = 0;
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
    for (const std::string& frame : frames) {
      packet_out_bytes_ += frame.size() + kPacketOutBytes;
    }
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
  SwitchPort* port = frame.port < board_.ports.size() ? board_.ports[frame.port].get() : nullptr;
  if (port == nullptr) {
    board_.packets.dropped(frame.port, DropCause::no_such_port, {&frame, 1});
    return;
  }
  const std::lock_guard lock(port->sending);
  if (port->queued() >= kQueueFrames) {
    board_.packets.dropped(frame.port, DropCause::tx_full, {&frame, 1});
    return;
  }
  port->queue.push_back(frame);
  if (touched_.empty() || touched_.back() != port) {
    touched_.push_back(port);
  }
}

void PacketWorker::flush_all() {
  for (SwitchPort* port : touched_) {
    flush(*port);
  }
  touched_.clear();
}

/// What flush() has copied into memory since the last time.
void PacketWorker::show_all() {
  for (SwitchPort* port : unshown_) {
    const std::lock_guard lock(port->sending);
    port->device->show();
  }
  unshown_.clear();
}

void PacketWorker::flush(SwitchPort& port) {
  const std::lock_guard lock(port.sending);
  while (port.queued() > 0 && !port.waits_for_room) {
    send(port);
  }
}

/// One batch; the caller has port.sending.
void PacketWorker::send(SwitchPort& port) {
  const std::span<const rt::OutFrame> frames(port.queue.data() + port.queue_head, port.queued());
  const Sent sent = port.device->send(frames);
  if (port.device->polled() && std::ranges::find(unshown_, &port) == unshown_.end()) {
    unshown_.push_back(&port);
  }
  board_.packets.sent(port.number, sent.delivered, sent.bytes, frames.first(sent.frames));
  port.queue_head += sent.frames;
  if (port.queued() == 0) {
    port.queue.clear();
    port.queue_head = 0;
  } else if (port.queue_head >= kQueueFrames) {
    port.queue.erase(port.queue.begin(),
                     port.queue.begin() + static_cast<std::ptrdiff_t>(port.queue_head));
    port.queue_head = 0;
  }
  if (sent.refused > 0) {
    board_.packets.count_drops(port.number, DropCause::tx_full, sent.refused);
  }
  if (sent.too_long > 0) {
    board_.packets.count_drops(port.number, DropCause::too_long, sent.too_long);
  }
  if (sent.full) {
    port.waits_for_room = true;
    if (!port.device->polled()) {
      watch_at(port.epoll, port.watched, EPOLLIN | EPOLLOUT, port.number, EPOLL_CTL_MOD);
    } else if (port.owner != index_) {
      wake_owner_(port.owner);  // it arms the port before it sleeps
    }
  }
  if (sent.error != 0) {
    clear_queue(port);
    port.failed.store(true);
    wake_owner_(port.owner);
  }
}

/// The caller has port.sending, or is alone.
void PacketWorker::clear_queue(SwitchPort& port) {
  board_.packets.dropped(port.number, DropCause::no_such_port,
                         {port.queue.data() + port.queue_head, port.queued()});
  port.queue.clear();
  port.queue_head = 0;
}

void PacketWorker::watch(int fd, std::uint32_t events, std::uint64_t tag, int operation) const {
  watch_at(epoll_.get(), fd, events, tag, operation);
}

/// Watches a port that may have a new descriptor, perhaps of the old number; a closed one left
/// epoll by itself, and one that is there already stays.
void PacketWorker::rewatch(SwitchPort& port) {
  port.watched = port.device->descriptor();
  port.waits_for_room = false;
  if (port.watched >= 0) {
    watch(port.watched, EPOLLIN, port.number, EPOLL_CTL_ADD);
  }
}

void PacketWorker::check_links() {
  for (SwitchPort* port : owned_) {
    check_link(*port, 0);
  }
}

/// `error`: what made us look, 0 for none.
void PacketWorker::check_link(SwitchPort& port, int error) {
  std::string news;
  bool up = false;
  {
    const std::lock_guard lock(port.sending);  // a port may open anew
    news = port.device->check_link();
    if (news.empty()) {
      return;
    }
    rewatch(port);
    up = port.device->up();
    if (!up) {
      clear_queue(port);
    }
  }
  board_.tell(port, error == 0 ? news : news + " (" + std::strerror(error) + ")");
  board_.dataplane.set_port_up(port.number, up);
}

}  // namespace catchment::softswitch
