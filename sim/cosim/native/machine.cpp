#include "machine.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace catchment::cosim {

namespace {

constexpr std::uint64_t kLook = 128;       // clocks; not a batch, so that no time depends on that
constexpr std::uint64_t kAccessBatch = 8;  // clocks; a driver's access waits no longer than it must

}  // namespace

DeviceNode& Machine::add_device(const rtl::Device& table, void* device, std::size_t fifo_bytes) {
  if (table.abi != rtl::Device::kAbi) {
    throw std::invalid_argument("the device's library has another version of device.hpp");
  }
  devices_.push_back(std::make_unique<DeviceNode>(table, device, fifo_bytes));
  return *devices_.back();
}

SwitchNode& Machine::add_switch(softswitch::Packets& packets, SwitchTiming timing) {
  switches_.push_back(std::make_unique<SwitchNode>(packets, timing));
  return *switches_.back();
}

MemberNode& Machine::add_member(StackTiming timing) {
  members_.push_back(std::make_unique<MemberNode>(world_, timing));
  return *members_.back();
}

RingNode& Machine::add_ring_node(const rtl::RingDevice& table, void* device) {
  if (table.abi != rtl::RingDevice::kAbi) {
    throw std::invalid_argument("the device's library has another version of ring_device.hpp");
  }
  ring_.push_back(std::make_unique<RingNode>(table, device));
  return *ring_.back();
}

void Machine::close_ring(LineTiming timing) {
  const std::size_t count = ring_.size();
  for (std::size_t i = 0; i < 2 * count; ++i) {
    links_.push_back(std::make_unique<FlitLine>(world_.seed(), world_.add_line(), timing));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t next = (i + 1) % count;
    ring_[i]->attach_next(link(i, true), link(next, false));
    ring_[next]->attach_before(link(next, false), link(i, true));
  }
  allow(timing.latency);
}

ProtocolLine& Machine::add_line(LineTiming timing) {
  lines_.push_back(std::make_unique<ProtocolLine>(world_.seed(), world_.add_line(), timing));
  if (capturing_) lines_.back()->capture = &sightings_;
  return *lines_.back();
}

void Machine::end(ProtocolLine& line, DeviceNode& device) {
  line.deliver = [&device](Arrival&& arrival) { device.arrive(std::move(arrival)); };
}

void Machine::end(ProtocolLine& line, Node& node, std::uint32_t port) {
  line.deliver = [this, &line, &node, port](Arrival&& arrival) {
    const Picos at = arrival.last;
    world_.schedule(line.number(), at, {&node, port, false, std::move(arrival)});
  };
}

void Machine::allow(Picos lookahead) {
  batch_ = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(lookahead / kClock), 1, batch_);
}

void Machine::run(std::uint64_t clocks) {
  while (clocks != 0) {
    const std::uint64_t part = std::min(clocks, batch_);
    step(part);
    clocks -= part;
  }
}

void Machine::run_watched(std::uint64_t limit) {
  const std::size_t open = waiting();
  while (limit != 0 && waiting() == open) {
    const std::uint64_t part = std::min(limit, kLook);
    run(part);
    limit -= part;
    if (open == 0) return;
  }
}

void Machine::run_accesses(const RegisterPort& registers) {
  while (registers.accessing()) run(kAccessBatch);
}

void Machine::capture(bool on) {
  capturing_ = on;
  for (const auto& line : lines_) line->capture = on ? &sightings_ : nullptr;
}

std::size_t Machine::waiting() const {
  std::size_t open = 0;
  for (const auto& device : devices_) open += device->waiting();
  for (const auto& member : members_) open += member->waiting();
  for (const auto& node : ring_) open += node->waiting();
  return open;
}

void Machine::step(std::uint64_t clocks) {
  if (closed_) throw std::logic_error("the machine is closed");
  for (const auto& device : devices_) device->run(now(), clocks);
  for (const auto& node : ring_) node->run(now(), clocks);
  clocks_ += clocks;
  world_.run(now(), carry_out);
}

}  // namespace catchment::cosim
