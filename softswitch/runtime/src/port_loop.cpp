#include "catchment/softswitch/port_loop.hpp"

#include <net/if.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "catchment/softswitch/packets.hpp"
#include "link_watch.hpp"
#include "packet_socket.hpp"

namespace catchment::softswitch {

namespace {

constexpr std::size_t kQueueFrames = 1024;  // per port, then dropped as tx_full
constexpr int kTickMs = 50;
constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};
constexpr std::uint64_t kLinkTag = kWakeTag - 1;

struct Port {
  std::uint32_t number = 0;
  std::string interface;
  std::optional<PacketSocket> socket;
  bool up = false;
  bool warned_checksums = false;
  bool warned_length = false;
  bool waits_for_room = false;
  std::vector<rt::OutFrame> queue;
  std::size_t queue_head = 0;
};

bool interface_up(const PacketSocket& socket, const std::string& interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  return ioctl(socket.descriptor(), SIOCGIFFLAGS, &request) == 0 &&
         (request.ifr_flags & IFF_UP) != 0;
}

}  // namespace

class PortLoop::Impl {
 public:
  explicit Impl(Dataplane& dataplane)
      : dataplane_(dataplane),
        packets_(dataplane.packets()),
        batch_(dataplane.options().max_frame_bytes),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    watch(wake_.get(), EPOLLIN, kWakeTag, EPOLL_CTL_ADD);
    if (links_.descriptor() >= 0) {
      watch(links_.descriptor(), EPOLLIN, kLinkTag, EPOLL_CTL_ADD);
    }
  }

  Status add_port(std::uint32_t number, const std::string& interface) {
    const DataplaneOptions& options = dataplane_.options();
    if (number >= rt::kPorts || number == options.cpu_port || number == options.drop_port) {
      return {StatusCode::invalid_argument,
              "port " + std::to_string(number) + ": ports are 0 to " +
                  std::to_string(rt::kPorts - 1) + " without the CPU port " +
                  std::to_string(options.cpu_port) + " and the drop port " +
                  std::to_string(options.drop_port)};
    }
    auto socket = PacketSocket::open(interface);
    if (!socket.ok()) {
      return socket.status();
    }
    const std::lock_guard lock(mutex_);
    if (ports_.contains(number)) {
      return {StatusCode::already_exists,
              "port " + std::to_string(number) + " is " + ports_[number]->interface + " already"};
    }
    auto port = std::make_unique<Port>();
    port->number = number;
    port->interface = interface;
    port->up = interface_up(socket.value(), interface);
    port->socket.emplace(std::move(socket.value()));
    watch(port->socket->descriptor(), EPOLLIN, number, EPOLL_CTL_ADD);
    dataplane_.set_port_up(number, port->up);
    ports_.emplace(number, std::move(port));
    return {};
  }

  Status remove_port(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = ports_.find(number);
    if (found == ports_.end()) {
      return {StatusCode::not_found, "there is no port " + std::to_string(number)};
    }
    clear_queue(*found->second);
    ports_.erase(found);
    dataplane_.set_port_up(number, false);
    return {};
  }

  void run() {
    std::array<epoll_event, 64> events;
    auto next_tick = std::chrono::steady_clock::now();
    while (!stopped_.load(std::memory_order_relaxed)) {
      const int count =
          epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), kTickMs);
      {
        // Held while a batch runs; add_port, remove_port and ports() wait for it.
        const std::lock_guard lock(mutex_);
        for (int i = 0; i < count; ++i) {
          serve(events[static_cast<std::size_t>(i)]);
        }
        flush();
      }
      const auto now = std::chrono::steady_clock::now();
      if (now >= next_tick) {
        next_tick = now + std::chrono::milliseconds(kTickMs);
        const auto wall = std::chrono::system_clock::now().time_since_epoch();
        dataplane_.expire_idle(std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count());
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
      for (const auto& [number, port] : ports_) {
        out.push_back({number, port->interface, port->up, {}});
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

  void wake() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one));
  }

  void tell(const Port& port, const std::string& text) {
    if (event_hook_) {
      event_hook_("port " + std::to_string(port.number) + " (" + port.interface + "): " + text);
    }
  }

  void serve(const epoll_event& event) {
    if (event.data.u64 == kWakeTag) {
      std::uint64_t ignored = 0;
      static_cast<void>(::read(wake_.get(), &ignored, sizeof ignored));
      run_packet_outs();
    } else if (event.data.u64 == kLinkTag) {
      links_.read([this](const LinkChange& change) { link_changed(change); });
    } else {
      const auto found = ports_.find(static_cast<std::uint32_t>(event.data.u64));
      if (found == ports_.end() || !found->second->socket) {
        return;
      }
      Port& port = *found->second;
      if ((event.events & EPOLLOUT) != 0) {
        port.waits_for_room = false;
        watch(port.socket->descriptor(), EPOLLIN, port.number, EPOLL_CTL_MOD);
      }
      receive(port);
    }
  }

  void receive(Port& port) {
    const Received got = port.socket->receive(batch_, port.number, frames_);
    if (got.error != 0) {
      set_up(port, false, std::strerror(got.error));
      return;
    }
    if (got.too_long > 0) {
      packets_.count_drops(port.number, DropCause::too_long, got.too_long);
      if (!port.warned_length) {
        port.warned_length = true;
        tell(port, "frames longer than " + std::to_string(dataplane_.options().max_frame_bytes) +
                       " bytes are dropped; the sender may leave segmentation to its device "
                       "(ethtool -K IF tso off gso off gro off)");
      }
    }
    if (got.unfinished_checksums && !port.warned_checksums) {
      port.warned_checksums = true;
      tell(port,
           "the sender leaves its checksums to its device: they will be wrong (ethtool -K IF tx "
           "off)");
    }
    if (got.frames > 0) {
      packets_.process(frames_);
      take_output();
    }
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
      const auto found = ports_.find(frame.port);
      if (found == ports_.end() || !found->second->socket) {
        packets_.count_drops(frame.port, DropCause::no_such_port, 1);
        out.release(frame.data);
      } else if (Port& port = *found->second; port.queue.size() - port.queue_head >= kQueueFrames) {
        packets_.count_drops(frame.port, DropCause::tx_full, 1);
        out.release(frame.data);
      } else {
        port.queue.push_back(frame);
      }
    }
    out.truncate(0);
  }

  void clear_queue(Port& port) {
    for (std::size_t i = port.queue_head; i < port.queue.size(); ++i) {
      packets_.output().release(port.queue[i].data);
    }
    if (port.queue.size() > port.queue_head) {
      packets_.count_drops(port.number, DropCause::no_such_port,
                           port.queue.size() - port.queue_head);
    }
    port.queue.clear();
    port.queue_head = 0;
  }

  void flush() {
    for (auto& [number, port] : ports_) {
      while (port->queue_head < port->queue.size() && !port->waits_for_room && port->socket) {
        flush(*port);
      }
    }
  }

  void flush(Port& port) {
    const rt::OutFrame* frames = port.queue.data() + port.queue_head;
    const Sent sent = port.socket->send(frames, port.queue.size() - port.queue_head);
    for (std::size_t i = 0; i < sent.frames; ++i) {
      packets_.output().release(frames[i].data);
    }
    port.queue_head += sent.frames;
    if (port.queue_head == port.queue.size()) {
      port.queue.clear();
      port.queue_head = 0;
    } else if (port.queue_head >= kQueueFrames) {
      port.queue.erase(port.queue.begin(),
                       port.queue.begin() + static_cast<std::ptrdiff_t>(port.queue_head));
      port.queue_head = 0;
    }
    if (sent.delivered > 0) {
      packets_.count_sent(port.number, sent.delivered, sent.bytes);
    }
    if (sent.refused > 0) {
      packets_.count_drops(port.number, DropCause::tx_full, sent.refused);
    }
    if (sent.too_long > 0) {
      packets_.count_drops(port.number, DropCause::too_long, sent.too_long);
    }
    if (sent.full) {
      port.waits_for_room = true;
      watch(port.socket->descriptor(), EPOLLIN | EPOLLOUT, port.number, EPOLL_CTL_MOD);
    }
    if (sent.error != 0) {
      set_up(port, false, std::strerror(sent.error));
      clear_queue(port);
    }
  }

  void set_up(Port& port, bool up, const std::string& why) {
    if (port.up == up) {
      return;
    }
    port.up = up;
    dataplane_.set_port_up(port.number, up);
    tell(port, why);
  }

  void link_changed(const LinkChange& change) {
    for (auto& [number, port] : ports_) {
      const bool ours = port->socket && port->socket->index() == change.index;
      if (!change.present && ours) {
        set_up(*port, false, "the interface is gone");
        clear_queue(*port);
        port->socket.reset();
      } else if (change.present && !port->socket && change.interface == port->interface) {
        reopen(*port);
      } else if (change.present && ours) {
        set_up(*port, change.up, change.up ? "up" : "down");
      }
    }
  }

  void reopen(Port& port) {
    auto socket = PacketSocket::open(port.interface);
    if (!socket.ok()) {
      tell(port, socket.status().message());
      return;
    }
    port.socket.emplace(std::move(socket.value()));
    port.waits_for_room = false;
    watch(port.socket->descriptor(), EPOLLIN, port.number, EPOLL_CTL_ADD);
    set_up(port, interface_up(*port.socket, port.interface), "the interface is back");
  }

  Dataplane& dataplane_;
  Packets& packets_;
  ReceiveBatch batch_;
  std::vector<rt::InputFrame> frames_;
  Descriptor epoll_;
  Descriptor wake_;
  LinkWatch links_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::unique_ptr<Port>> ports_;
  std::function<void(const std::string&)> event_hook_;
  std::mutex packet_out_mutex_;
  std::vector<std::string> packet_outs_;
  std::atomic<bool> stopped_{false};
};

PortLoop::PortLoop(Dataplane& dataplane) : impl_(std::make_unique<Impl>(dataplane)) {}
PortLoop::~PortLoop() = default;
Status PortLoop::add_port(std::uint32_t port, const std::string& interface) {
  return impl_->add_port(port, interface);
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
