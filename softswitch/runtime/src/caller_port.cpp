#include "caller_port.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "catchment/common/processor.hpp"
#include "catchment/shm/error.hpp"
#include "catchment/softswitch/enter.hpp"
#include "passed_on.hpp"

namespace catchment::softswitch {

namespace {

using Bytes = std::span<const std::uint8_t>;

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

[[noreturn]] void refuse(const std::string& why) {
  throw shm::ShmError(CATCHMENT_SHM_DETACHED, why);
}

}  // namespace

CallerPort::Way::Way(const SharedRing& ring, shm::Mapping rings)
    : epoch(ring.epoch),
      mapping(std::move(rings)),
      producer(mapping.outgoing(shm::Side::switch_side)),
      bell(ring.bell.data(), strnlen(ring.bell.data(), ring.bell.size())) {}

CallerPort::CallerPort(std::unique_ptr<Caller> caller, std::uint32_t port)
    : caller_(std::move(caller)), state_(caller_->memory()->state()), port_(port) {
  touched_.reserve(rt::kPorts);  // a way that is touched is noted, whatever memory is left
}

shm::Entered enter(shm::Invitation invitation) {
  auto caller = Caller::attach(std::move(invitation.memory), invitation.switch_pid);
  if (!caller.ok()) {
    refuse(caller.status().message());
  }
  const std::shared_ptr<StateMapping> memory = caller.value()->memory();
  if (invitation.port >= rt::kPorts) {
    refuse("the switch says that this is port " + std::to_string(invitation.port));
  }
  std::byte* const place = memory->state().rings[invitation.port].rings;
  if (!memory->contains(place, sizeof(shm::Header))) {
    refuse("the rings of the port do not lie in the switch's memory");
  }
  shm::Mapping rings = shm::Mapping::found_at(place, memory);
  if (!memory->contains(place, shm::Mapping::bytes_of(rings.geometry()))) {
    refuse("the rings of the port do not fit the switch's memory");
  }
  return {std::move(rings),
          std::make_unique<CallerPort>(std::move(caller.value()), invitation.port)};
}

bool CallerPort::run(std::span<const Frame> frames, shm::Channel& channel, IfHeld held) {
  inputs_.clear();
  for (const Frame& frame : frames) {
    if (frame.size() > state_.max_frame_bytes) {
      return false;  // the switch counts it
    }
    inputs_.push_back({frame.data(), static_cast<std::uint32_t>(frame.size()), port_});
  }
  channel_ = &channel;
  try {
    const bool ran = caller_->run(inputs_, *this, held) == Outcome::ran;
    wake_all();
    return ran;
  } catch (...) {
    wake_all();  // what went before is theirs
    throw;
  }
}

/// Wakes those who got something: when the lock is given back, so that nobody waits for it
/// meanwhile.
void CallerPort::wake_all() {
  for (const std::uint32_t port : touched_) {
    wake(*ways_[port]);
  }
  touched_.clear();
  if (std::exchange(passed_on_, false)) {
    channel_->wake();
  }
}

bool CallerPort::open() {
  show_processor(Processor::number());
  return !state_.rings[port_].through_switch;
}

void CallerPort::show_processor(int number) {
  const auto here = static_cast<std::uint32_t>(number + 1);
  const std::atomic_ref shown(state_.rings[port_].processor);
  if (shown.load(std::memory_order_relaxed) != here) {
    shown.store(here, std::memory_order_relaxed);
  }
}

std::ptrdiff_t CallerPort::seen_on(int number) const {
  const auto place = static_cast<std::uint32_t>(number + 1);
  return std::ranges::count_if(others_, [&](std::uint32_t port) {
    return std::atomic_ref(state_.rings[port].processor).load(std::memory_order_relaxed) == place;
  });
}

bool CallerPort::shares_processor() {
  const int here = Processor::number();
  show_processor(here);
  return seen_on(here) != 0;
}

bool CallerPort::move_apart() {
  const int here = Processor::number();
  show_processor(here);
  int best = here;
  std::ptrdiff_t fewest = seen_on(here);
  if (fewest == 0) {
    return false;
  }
  Processor::for_each([&](int number) {
    const std::ptrdiff_t seen = number == here ? fewest : seen_on(number);
    if (seen < fewest) {
      fewest = seen;
      best = number;
    }
  });
  if (best == here) {
    return false;
  }
  show_processor(best);  // before others here look, who would come along
  return Processor::go_to(best);
}

rt::Room CallerPort::room(std::uint32_t port) {
  Way* const way = way_to(port);
  if (way == nullptr || way->buffers) {
    return {};
  }
  // Who makes it is who reads it.
  if (port == port_ && (own_room_ = channel_->own().has_room())) {
    return {.data = channel_->own().begin(), .bytes = way->mapping.geometry().cell_bytes};
  }
  if (!way->producer.has_room()) {
    way->buffers = true;
    return {};
  }
  rt::Room room{.bytes = way->mapping.geometry().cell_bytes};
  room.data = way->producer.begin(room.streams);
  return room;
}

void CallerPort::filled(std::uint32_t port, std::uint32_t length) {
  shm::Producer& producer = ways_[port]->producer;
  if (port == port_ && own_room_) {
    // One that finds no room goes into the ring, and so do all behind it.
    channel_->own().end(length, producer.published());
  } else {
    producer.end(length);
  }
  rt::PortCounters& counters = state_.ports[port];
  counters.tx_packets += 1;
  counters.tx_bytes += length;
}

Left CallerPort::leave(const rt::OutFrame& frame) {
  const Bytes bytes(frame.data, frame.length);
  Way* const way = way_to(frame.port);
  if (way != nullptr) {
    if (frame.length == 0 || frame.length > way->mapping.geometry().cell_bytes) {
      return Left::too_long;
    }
    if (way->producer.has_room()) {
      way->producer.put({.head = {}, .body = bytes});
      return Left::sent;
    }
  }
  return pass_on({shm::Mark::Kind::leaves, frame.port}, bytes) ? Left::switchs : Left::full;
}

CallerPort::Way* CallerPort::way_to(std::uint32_t port) {
  if (port >= rt::kPorts) {
    return nullptr;
  }
  Way* const known = ways_[port].get();
  // Nobody changes what the ports have for rings while this one has the lock.
  return known != nullptr && known->touched ? known : begin_way_to(port);
}

CallerPort::Way* CallerPort::begin_way_to(std::uint32_t port) {
  const SharedRing& ring = state_.rings[port];
  if (ring.rings == nullptr || ring.through_switch) {
    return nullptr;
  }
  std::unique_ptr<Way>& way = ways_[port];
  if (way == nullptr || way->epoch != ring.epoch) {
    if (port != port_ && std::ranges::find(others_, port) == others_.end()) {
      others_.push_back(port);
    }
    try {
      way = std::make_unique<Way>(ring, shm::Mapping::found_at(ring.rings, caller_->memory()));
    } catch (const shm::ShmError&) {
      way.reset();
      return nullptr;
    }
  }
  way->touched = true;
  way->producer.go_on();
  touched_.push_back(port);
  return way.get();
}

bool CallerPort::pass_on(shm::Mark mark, Bytes bytes) {
  shm::Producer& to_switch = channel_->out();
  if (bytes.empty() || bytes.size() > channel_->mapping().geometry().cell_bytes ||
      !to_switch.has_room()) {
    return false;
  }
  to_switch.put({.head = {}, .body = bytes}, mark);
  passed_on_ = true;
  return true;
}

void CallerPort::digest(const DigestMessage& message) {
  pass_on({shm::Mark::Kind::digest, 0}, bytes_of(digest_bytes(message)));
}

void CallerPort::line(const std::string& text) {
  pass_on({shm::Mark::Kind::line, 0}, bytes_of(text));
}

void CallerPort::step_limit(std::uint32_t port, const char* where) {
  pass_on({shm::Mark::Kind::step_limit, port}, bytes_of(where));
}

void CallerPort::close() {
  std::erase_if(touched_, [this](std::uint32_t port) {
    ways_[port]->touched = false;
    ways_[port]->buffers = false;
    return !ways_[port]->producer.publish();
  });
  if (passed_on_) {
    channel_->show();
  }
}

void CallerPort::wake(Way& way) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::atomic_ref waiting(way.mapping.waiting(shm::Side::peer));
  // The port may have another peer by now, with the same rings and another bell.
  const std::uint32_t here = shm::kForFrames | way.mapping.attachment_bits();
  std::uint32_t word = waiting.load(std::memory_order_relaxed);
  while ((word & ~std::uint32_t{shm::kForRoom}) == here) {
    if (waiting.compare_exchange_weak(word, 0, std::memory_order_acq_rel)) {
      static_cast<void>(ringer_.ring(way.bell));
      return;
    }
  }
}

}  // namespace catchment::softswitch
