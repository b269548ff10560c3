#include "world.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace catchment::cosim {

namespace {

constexpr std::uint64_t kLook = 128;  // clocks; not a batch, so that no time depends on that
constexpr std::uint32_t kFirstMember = 1U << 31U;  // as a source of events; lines come before
constexpr std::uint64_t kAccessBatch = 8;  // clocks; a driver's access waits no longer than it must

}  // namespace

DeviceNode& World::add_device(const rtl::Device& table, void* device, std::size_t fifo_bytes) {
  if (table.abi != rtl::Device::kAbi) {
    throw std::invalid_argument("the device's library has another version of device.hpp");
  }
  devices_.push_back(std::make_unique<DeviceNode>(table, device, fifo_bytes));
  return *devices_.back();
}

SwitchNode& World::add_switch(softswitch::Packets& packets, SwitchTiming timing) {
  switches_.push_back(std::make_unique<SwitchNode>(packets, timing));
  return *switches_.back();
}

MemberNode& World::add_member(StackTiming timing) {
  const auto source = kFirstMember + static_cast<std::uint32_t>(members_.size());
  members_.push_back(std::make_unique<MemberNode>(events_, source, timing));
  return *members_.back();
}

Line& World::add_line(LineTiming timing, std::uint64_t seed) {
  const auto number = static_cast<std::uint32_t>(lines_.size());
  lines_.push_back(std::make_unique<Line>(number, timing, seed));
  numbers_.push_back(0);
  if (capturing_) lines_.back()->capture = &sightings_;
  return *lines_.back();
}

void World::end(Line& line, DeviceNode& device) {
  line.deliver = [&device](Arrival&& arrival) { device.arrive(std::move(arrival)); };
}

void World::end(Line& line, Node& node, std::uint32_t port) {
  line.deliver = [this, &line, &node, port](Arrival&& arrival) {
    const Picos at = arrival.last;
    events_.push(
        {at, line.number(), numbers_[line.number()]++, &node, port, false, std::move(arrival)});
  };
}

void World::allow(Picos lookahead) {
  batch_ = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(lookahead / kClock), 1, batch_);
}

void World::run(std::uint64_t clocks) {
  while (clocks != 0) {
    const std::uint64_t part = std::min(clocks, batch_);
    step(part);
    clocks -= part;
  }
}

void World::run_watched(std::uint64_t limit) {
  const std::size_t open = waiting();
  while (limit != 0 && waiting() == open) {
    const std::uint64_t part = std::min(limit, kLook);
    run(part);
    limit -= part;
    if (open == 0) return;
  }
}

void World::run_accesses(DeviceNode& device) {
  while (device.accessing()) run(kAccessBatch);
}

void World::capture(bool on) {
  capturing_ = on;
  for (const auto& line : lines_) line->capture = on ? &sightings_ : nullptr;
}

std::size_t World::waiting() const {
  std::size_t open = 0;
  for (const auto& device : devices_) open += device->waiting();
  for (const auto& member : members_) open += member->waiting();
  return open;
}

void World::step(std::uint64_t clocks) {
  if (closed_) throw std::logic_error("the machine is closed");
  for (const auto& device : devices_) device->run(now(), clocks);
  clocks_ += clocks;
  events_.run(now());
}

}  // namespace catchment::cosim
