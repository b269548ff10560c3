#include "catchment/softswitch/port_loop.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "catchment/softswitch/packets.hpp"
#include "descriptor.hpp"
#include "fault_port.hpp"
#include "link_watch.hpp"
#include "open_port.hpp"

namespace catchment::softswitch {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kQueueFrames = 1024;  // per port, then dropped as tx_full
constexpr auto kTick = std::chrono::milliseconds(50);
/// How long a polled port without frames is looked at before the loop sleeps.
constexpr auto kSpin = std::chrono::microseconds(50);
/// After this long without frames others may have the processor in between.
constexpr auto kAlone = std::chrono::microseconds(2);
/// Batches of one port before the others have their turn.
constexpr int kBatchesPerTurn = 8;
/// Turns of a busy polled port between two looks at all the others.
constexpr int kTurnsPerWait = 8;
constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};
constexpr std::uint64_t kLinkTag = kWakeTag - 1;

/// A port with what the loop knows of it.
struct Slot {
  std::uint32_t number = 0;
  std::unique_ptr<Port> port;
  FaultPort* faults = nullptr;  // `port`, once it has been given faults
  int watched = -1;             // the descriptor that epoll has
  bool waits_for_room = false;
  std::vector<rt::OutFrame> queue;
  std::size_t queue_head = 0;

  [[nodiscard]] std::size_t queued() const { return queue.size() - queue_head; }
};

timespec to_timespec(std::chrono::nanoseconds wait) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
  return {.tv_sec = seconds.count(), .tv_nsec = (wait - seconds).count()};
}

}  // namespace

class PortLoop::Impl {
 public:
  explicit Impl(Dataplane& dataplane)
      : dataplane_(dataplane),
        packets_(dataplane.packets()),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    watch(wake_.get(), EPOLLIN, kWakeTag, EPOLL_CTL_ADD);
    if (links_.descriptor() >= 0) {
      watch(links_.descriptor(), EPOLLIN, kLinkTag, EPOLL_CTL_ADD);
    }
  }

  Status add_port(std::uint32_t number, const PortSpec& spec) {
    const DataplaneOptions& options = dataplane_.options();
    if (number >= rt::kPorts || number == options.cpu_port || number == options.drop_port) {
      return {StatusCode::invalid_argument,
              "port " + std::to_string(number) + ": ports are 0 to " +
                  std::to_string(rt::kPorts - 1) + " without the CPU port " +
                  std::to_string(options.cpu_port) + " and the drop port " +
                  std::to_string(options.drop_port)};
    }
    auto port = open_port(spec, {number, options.max_frame_bytes});
    if (!port.ok()) {
      return port.status();
    }
    const std::lock_guard lock(mutex_);
    if (const auto taken = slots_.find(number); taken != slots_.end()) {
      return {StatusCode::already_exists,
              "port " + std::to_string(number) + " is " + taken->second->port->name() + " already"};
    }
    auto slot = std::make_unique<Slot>();
    slot->number = number;
    slot->port = std::move(port.value());
    rewatch(*slot);
    dataplane_.set_port_up(number, slot->port->up());
    slots_.emplace(number, std::move(slot));
    list_polled();
    return {};
  }

  Status remove_port(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = slots_.find(number);
    if (found == slots_.end()) {
      return {StatusCode::not_found, "there is no port " + std::to_string(number)};
    }
    clear_queue(*found->second);
    std::erase(faulty_, found->second.get());
    slots_.erase(found);
    list_polled();
    dataplane_.set_port_up(number, false);
    return {};
  }

  Status set_faults(std::uint32_t number, const PortFaults& faults) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = slots_.find(number);
      if (found == slots_.end()) {
        return {StatusCode::not_found, "there is no port " + std::to_string(number)};
      }
      Slot& slot = *found->second;
      if (slot.faults == nullptr) {
        auto wrapped = std::make_unique<FaultPort>(std::move(slot.port), number);
        slot.faults = wrapped.get();
        slot.port = std::move(wrapped);
        faulty_.push_back(&slot);
      }
      slot.faults->set(faults);
      tell(slot, "faults " + faults.text());
    }
    wake();
    return {};
  }

  void run() {
    std::array<epoll_event, 64> events;
    auto next_tick = Clock::now();
    auto last_polled_frame = next_tick - kSpin;
    int turns = 0;
    while (!stopped_.load(std::memory_order_relaxed)) {
      int count = 0;
      if (++turns >= kTurnsPerWait || !polled_frames_) {
        turns = 0;
        const timespec patience = to_timespec(wait_at_most(last_polled_frame));
        count = epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()),
                             &patience, nullptr);
      }
      {
        // Held while a batch runs; add_port, remove_port and ports() wait for it.
        const std::lock_guard lock(mutex_);
        for (int i = 0; i < count; ++i) {
          serve(events[static_cast<std::size_t>(i)]);
        }
        poll();
        serve_held();
        flush();
      }
      const auto now = Clock::now();
      if (polled_frames_) {
        last_polled_frame = now;
      } else if (now - last_polled_frame > kAlone && now - last_polled_frame < kSpin) {
        sched_yield();  // a peer may be waiting for this processor
      }
      if (now >= next_tick) {
        next_tick = now + kTick;
        tick();
      }
    }
  }

  void stop() {
    stopped_.store(true);
    wake();
  }

  void packet_out(std::string frame) {
    {
      const std::lock_guard lock(packet_out_mutex_);
      packet_outs_.push_back(std::move(frame));
    }
    wake();
  }

  [[nodiscard]] std::vector<PortStatus> ports() const {
    std::vector<PortStatus> out;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [number, slot] : slots_) {
        PortStatus& port = out.emplace_back();
        port.port = number;
        port.name = slot->port->name();
        port.up = slot->port->up();
        port.io = slot->port->io_statistics();
        if (slot->faults != nullptr) {
          port.faults = slot->faults->faults();
          port.faults_in = slot->faults->counters_in();
          port.faults_out = slot->faults->counters_out();
        }
      }
    }
    for (PortStatus& port : out) {
      port.statistics = dataplane_.statistics(port.port);
    }
    return out;
  }

  void on_event(std::function<void(const std::string&)> hook) {
    const std::lock_guard lock(mutex_);
    event_hook_ = std::move(hook);
  }

 private:
  void watch(int fd, std::uint32_t events, std::uint64_t tag, int operation) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    static_cast<void>(epoll_ctl(epoll_.get(), operation, fd, &event));
  }

  /// After a port may have a new descriptor, perhaps of the old number; a closed one left epoll by
  /// itself, and one that is there already stays.
  void rewatch(Slot& slot) {
    slot.watched = slot.port->descriptor();
    slot.waits_for_room = false;
    if (slot.watched >= 0) {
      watch(slot.watched, EPOLLIN, slot.number, EPOLL_CTL_ADD);
    }
  }

  void wake() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one));
  }

  void tell(const Slot& slot, const std::string& text) {
    if (event_hook_ && !text.empty()) {
      event_hook_("port " + std::to_string(slot.number) + " (" + slot.port->name() + "): " + text);
    }
  }

  void list_polled() {
    polled_.clear();
    for (const auto& [number, slot] : slots_) {
      if (slot->port->polled()) {
        polled_.push_back(slot.get());
      }
    }
  }

  std::chrono::nanoseconds wait_at_most(Clock::time_point last_polled_frame) {
    const std::lock_guard lock(mutex_);
    std::chrono::nanoseconds wait = kTick;
    if (!faulty_.empty()) {
      const auto now = Clock::now();
      for (const Slot* slot : faulty_) {
        const auto due = std::min(slot->faults->due_in(), slot->faults->due_out());
        wait = std::min(wait, std::max(due, now) - now);
      }
    }
    if (polled_.empty() || wait.count() == 0) {
      return wait;
    }
    if (Clock::now() - last_polled_frame < kSpin) {
      return {};
    }
    for (Slot* slot : polled_) {
      if (!slot->port->arm()) {
        return {};
      }
    }
    return wait;
  }

  /// Frames that faults held and whose time has come.
  void serve_held() {
    if (faulty_.empty()) {
      return;
    }
    const auto now = Clock::now();
    for (Slot* slot : faulty_) {
      if (slot->faults->due_in() <= now) {
        receive(*slot);
      }
      if (slot->faults->due_out() <= now) {
        flush(*slot);
      }
    }
  }

  void tick() {
    {
      const std::lock_guard lock(mutex_);
      check_links();
    }
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    dataplane_.expire_idle(std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count());
  }

  void serve(const epoll_event& event) {
    if (event.data.u64 == kWakeTag) {
      std::uint64_t ignored = 0;
      static_cast<void>(::read(wake_.get(), &ignored, sizeof ignored));
      run_packet_outs();
    } else if (event.data.u64 == kLinkTag) {
      links_.drain();
      check_links();
    } else {
      const auto found = slots_.find(static_cast<std::uint32_t>(event.data.u64));
      if (found == slots_.end()) {
        return;
      }
      Slot& slot = *found->second;
      if ((event.events & EPOLLOUT) != 0) {
        slot.waits_for_room = false;
        watch(slot.watched, EPOLLIN, slot.number, EPOLL_CTL_MOD);
      }
      if (slot.port->polled()) {
        check_link(slot, 0);  // woken up, or the peer came or went
      } else {
        receive(slot);
      }
    }
  }

  void poll() {
    polled_frames_ = false;
    for (Slot* slot : polled_) {
      slot->waits_for_room = false;
      polled_frames_ |= receive(*slot);
    }
  }

  /// Whether frames came.
  bool receive(Slot& slot) {
    frames_.clear();
    const Received got = slot.port->receive(frames_);
    tell(slot, got.notice);
    if (got.error != 0) {
      check_link(slot, got.error);
      return false;
    }
    if (got.too_long > 0) {
      packets_.count_drops(slot.number, DropCause::too_long, got.too_long);
    }
    if (got.frames == 0) {
      return false;
    }
    packets_.process(frames_);
    take_output();
    return true;
  }

  void run_packet_outs() {
    std::vector<std::string> frames;
    {
      const std::lock_guard lock(packet_out_mutex_);
      frames.swap(packet_outs_);
    }
    for (const std::string& frame : frames) {
      const rt::InputFrame input{reinterpret_cast<const std::uint8_t*>(frame.data()),
                                 static_cast<std::uint32_t>(frame.size()),
                                 dataplane_.options().cpu_port};
      packets_.process({&input, 1});
      take_output();
    }
  }

  /// Moves what the program sent to the ports' queues.
  void take_output() {
    rt::Output& out = packets_.output();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const rt::OutFrame& frame = out[i];
      const auto found = slots_.find(frame.port);
      if (found == slots_.end()) {
        packets_.count_drops(frame.port, DropCause::no_such_port, 1);
        out.release(frame.data);
      } else if (found->second->queued() >= kQueueFrames) {
        packets_.count_drops(frame.port, DropCause::tx_full, 1);
        out.release(frame.data);
      } else {
        found->second->queue.push_back(frame);
      }
    }
    out.truncate(0);
  }

  void clear_queue(Slot& slot) {
    for (std::size_t i = slot.queue_head; i < slot.queue.size(); ++i) {
      packets_.output().release(slot.queue[i].data);
    }
    if (slot.queued() > 0) {
      packets_.count_drops(slot.number, DropCause::no_such_port, slot.queued());
    }
    slot.queue.clear();
    slot.queue_head = 0;
  }

  void flush() {
    for (auto& [number, slot] : slots_) {
      while (slot->queued() > 0 && !slot->waits_for_room) {
        flush(*slot);
      }
    }
  }

  void flush(Slot& slot) {
    const rt::OutFrame* frames = slot.queue.data() + slot.queue_head;
    const Sent sent = slot.port->send({frames, slot.queued()});
    for (std::size_t i = 0; i < sent.frames; ++i) {
      packets_.output().release(frames[i].data);
    }
    slot.queue_head += sent.frames;
    if (slot.queued() == 0) {
      slot.queue.clear();
      slot.queue_head = 0;
    } else if (slot.queue_head >= kQueueFrames) {
      slot.queue.erase(slot.queue.begin(),
                       slot.queue.begin() + static_cast<std::ptrdiff_t>(slot.queue_head));
      slot.queue_head = 0;
    }
    if (sent.delivered > 0) {
      packets_.count_sent(slot.number, sent.delivered, sent.bytes);
    }
    if (sent.refused > 0) {
      packets_.count_drops(slot.number, DropCause::tx_full, sent.refused);
    }
    if (sent.too_long > 0) {
      packets_.count_drops(slot.number, DropCause::too_long, sent.too_long);
    }
    if (sent.full) {
      slot.waits_for_room = true;
      if (!slot.port->polled()) {
        watch(slot.watched, EPOLLIN | EPOLLOUT, slot.number, EPOLL_CTL_MOD);
      }
    }
    if (sent.error != 0) {
      check_link(slot, sent.error);
      clear_queue(slot);
    }
  }

  void check_links() {
    for (auto& [number, slot] : slots_) {
      check_link(*slot, 0);
    }
  }

  /// `error`: what made us look, 0 for none.
  void check_link(Slot& slot, int error) {
    const std::string news = slot.port->check_link();
    if (news.empty()) {
      return;
    }
    rewatch(slot);
    tell(slot, error == 0 ? news : news + " (" + std::strerror(error) + ")");
    dataplane_.set_port_up(slot.number, slot.port->up());
    if (!slot.port->up()) {
      clear_queue(slot);
    }
  }

  Dataplane& dataplane_;
  Packets& packets_;
  std::vector<rt::InputFrame> frames_;
  Descriptor epoll_;
  Descriptor wake_;
  LinkWatch links_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> polled_;
  std::vector<Slot*> faulty_;   // those with a FaultPort
  bool polled_frames_ = false;  // in the last turn
  std::function<void(const std::string&)> event_hook_;
  std::mutex packet_out_mutex_;
  std::vector<std::string> packet_outs_;
  std::atomic<bool> stopped_{false};
};

PortLoop::PortLoop(Dataplane& dataplane) : impl_(std::make_unique<Impl>(dataplane)) {}
PortLoop::~PortLoop() = default;
Status PortLoop::add_port(std::uint32_t port, const PortSpec& spec) {
  return impl_->add_port(port, spec);
}
Status PortLoop::set_faults(std::uint32_t port, const PortFaults& faults) {
  return impl_->set_faults(port, faults);
}
Status PortLoop::remove_port(std::uint32_t port) { return impl_->remove_port(port); }
void PortLoop::run() { impl_->run(); }
void PortLoop::stop() { impl_->stop(); }
void PortLoop::packet_out(std::string frame) { impl_->packet_out(std::move(frame)); }
std::vector<PortStatus> PortLoop::ports() const { return impl_->ports(); }
void PortLoop::on_event(std::function<void(const std::string&)> hook) {
  impl_->on_event(std::move(hook));
}

}  // namespace catchment::softswitch
