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
    auto port = open_port(spec, {number, options.max_frame_bytes, board_.dataplane.callers_door()});
    if (!port.ok()) {
      return port.status();
    }
    const Turns::Change change(board_.turns);
    auto& place = board_.ports[number];
    if (place != nullptr) {
      return {StatusCode::already_exists,
              "port " + std::to_string(number) + " is " + place->device->name() + " already"};
    }
    place = std::make_unique<SwitchPort>();
    place->number = number;
    place->device = std::move(port.value());
    board_.dataplane.set_port_up(number, place->device->up());
    const auto idlest =
        std::ranges::min_element(workers_, {}, [](const auto& worker) { return worker->owned(); });
    (*idlest)->adopt(*place);
    return {};
  }

  Status set_faults(std::uint32_t number, const PortFaults& faults) {
    const Turns::Change change(board_.turns);
    if (number >= rt::kPorts || board_.ports[number] == nullptr) {
      return no_port(number);
    }
    SwitchPort& port = *board_.ports[number];
    PacketWorker& owner = *workers_[port.owner];
    if (port.faults == nullptr) {
      auto wrapped = std::make_unique<FaultPort>(std::move(port.device), number);
      port.faults = wrapped.get();
      port.device = std::move(wrapped);
      owner.refresh();
    }
    port.faults->set(faults);
    board_.tell(port, "faults " + faults.text());
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

  bool packet_out(std::string frame) { return workers_.front()->packet_out(std::move(frame)); }

  [[nodiscard]] std::vector<PortStatus> ports() const {
    std::vector<PortStatus> out;
    {
      const Turns::Change change(board_.turns);
      for (const auto& port : board_.ports) {
        if (port == nullptr) {
          continue;
        }
        PortStatus& status = out.emplace_back();
        status.port = port->number;
        status.name = port->device->name();
        status.up = port->device->up();
        status.io = port->device->io_statistics();
        if (port->faults != nullptr) {
          status.faults = port->faults->faults();
          status.faults_in = port->faults->counters_in();
          status.faults_out = port->faults->counters_out();
        }
      }
    }
    for (PortStatus& status : out) {
      status.statistics = board_.dataplane.statistics(status.port);
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
void PortLoop::run() { impl_->run(); }
void PortLoop::stop() { impl_->stop(); }
bool PortLoop::packet_out(std::string frame) { return impl_->packet_out(std::move(frame)); }
std::vector<PortStatus> PortLoop::ports() const { return impl_->ports(); }
void PortLoop::on_event(std::function<void(const std::string&)> hook) {
  impl_->on_event(std::move(hook));
}

}  // namespace catchment::softswitch
