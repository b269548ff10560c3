#include "catchment/softswitch/port_loop.hpp"

#include <algorithm>
#include <memory>
#include <thread>

#include "open_port.hpp"
#include "packet_worker.hpp"
#include "switchboard.hpp"

namespace catchment::softswitch {

class PortLoop::Impl {
 public:
  Impl(Dataplane& dataplane, std::size_t workers) : board_(dataplane) {
    for (std::size_t i = 0; i < std::max<std::size_t>(workers, 1); ++i) {
      workers_.push_back(std::make_unique<PacketWorker>(
          board_, i, [this](std::size_t owner) { workers_[owner]->wake(); }));
    }
  }

  Status add_port(std::uint32_t number, const PortSpec& spec) {
    const DataplaneOptions& options = board_.dataplane.options();
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
    const Turns::Change change(board_.turns);
    auto& place = board_.slots[number];
    if (place != nullptr) {
      return {StatusCode::already_exists,
              "port " + std::to_string(number) + " is " + place->port->name() + " already"};
    }
    place = std::make_unique<Slot>();
    place->number = number;
    place->port = std::move(port.value());
    board_.dataplane.set_port_up(number, place->port->up());
    const auto idlest =
        std::ranges::min_element(workers_, {}, [](const auto& worker) { return worker->owned(); });
    (*idlest)->adopt(*place);
    return {};
  }

  Status remove_port(std::uint32_t number) {
    const Turns::Change change(board_.turns);
    if (number >= rt::kPorts || board_.slots[number] == nullptr) {
      return no_port(number);
    }
    workers_[board_.slots[number]->owner]->forget(*board_.slots[number]);
    board_.slots[number].reset();
    board_.dataplane.set_port_up(number, false);
    return {};
  }

  Status set_faults(std::uint32_t number, const PortFaults& faults) {
    const Turns::Change change(board_.turns);
    if (number >= rt::kPorts || board_.slots[number] == nullptr) {
      return no_port(number);
    }
    Slot& slot = *board_.slots[number];
    PacketWorker& owner = *workers_[slot.owner];
    if (slot.faults == nullptr) {
      auto wrapped = std::make_unique<FaultPort>(std::move(slot.port), number);
      slot.faults = wrapped.get();
      slot.port = std::move(wrapped);
      owner.refresh();
    }
    slot.faults->set(faults);
    board_.tell(slot, "faults " + faults.text());
    owner.wake();
    return {};
  }

  void run() {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < workers_.size(); ++i) {
      others.emplace_back([worker = workers_[i].get()] { worker->run(); });
    }
    workers_.front()->run();
  }

  void stop() {
    board_.stopped.store(true);
    for (const auto& worker : workers_) {
      worker->wake();
    }
  }

  void packet_out(std::string frame) { workers_.front()->packet_out(std::move(frame)); }

  [[nodiscard]] std::vector<PortStatus> ports() const {
    std::vector<PortStatus> out;
    {
      const Turns::Change change(board_.turns);
      for (const auto& slot : board_.slots) {
        if (slot == nullptr) {
          continue;
        }
        PortStatus& port = out.emplace_back();
        port.port = slot->number;
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
      port.statistics = board_.dataplane.statistics(port.port);
    }
    return out;
  }

  void on_event(std::function<void(const std::string&)> hook) {
    const std::lock_guard lock(board_.hook_mutex);
    board_.event_hook = std::move(hook);
  }

 private:
  static Status no_port(std::uint32_t number) {
    return {StatusCode::not_found, "there is no port " + std::to_string(number)};
  }

  mutable Switchboard board_;
  std::vector<std::unique_ptr<PacketWorker>> workers_;
};

PortLoop::PortLoop(Dataplane& dataplane, std::size_t workers)
    : impl_(std::make_unique<Impl>(dataplane, workers)) {}
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
