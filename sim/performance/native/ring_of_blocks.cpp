#include "ring_of_blocks.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/world/native/ethernet.hpp"

namespace catchment::performance {
namespace {

// Frames of a block: larger ones blur when heartbeats come (docs/reference/simulate.md).
constexpr std::uint64_t kBlock = 4;

}  // namespace

RingOfBlocks::RingOfBlocks(const RingTiming& timing, const std::vector<Picos>& bytes)
    : timing_(timing) {
  for (const Picos byte : bytes) lines_.push_back({byte});
}

void RingOfBlocks::add_hop(std::vector<std::uint32_t> forth, std::vector<std::uint32_t> back,
                           Picos heartbeat) {
  if (forth.empty() || back.empty()) throw std::invalid_argument("a hop needs lines");
  hops_.push_back({std::move(forth), std::move(back), heartbeat, world_.add_node()});
}

Picos RingOfBlocks::run(std::uint32_t chunk, std::uint32_t steps) {
  if (all_ != 0) throw std::logic_error("a ring runs once");
  chunk_ = chunk;
  all_ = std::uint64_t{chunk} * steps;
  left_ = hops_.size();
  for (std::uint32_t which = 0; which < hops_.size(); ++which) {
    schedule(which, timing_.push, {What::kChunk});
    schedule(which, hops_[which].heartbeat, {What::kInterval});
  }
  const auto visit = [this](const auto& event) { happen(event.payload); };
  while (left_ != 0 && world_.step(world::kForever, visit)) {
  }
  if (left_ != 0) throw std::logic_error("a ring has stopped");
  return ended_;
}

void RingOfBlocks::happen(const Happening& event) {
  Hop& hop = hops_[event.hop];
  switch (event.what) {
    case What::kChunk:
      hop.may += chunk_;
      return send(event.hop);
    case What::kFree:
      hop.busy = false;
      return send(event.hop);
    case What::kAtLine:
      return pass(event);
    case What::kReceived:
      return receive(event.hop, event.frames);
    case What::kInterval:
      if (hop.got < all_ && world_.now() - hop.said_at >= hop.heartbeat) say(event.hop);
      return;
    case What::kAckAtLine:
      return pass_back(event);
    case What::kAcked:
      hop.acked = std::max(hop.acked, event.frames);
      return send(event.hop);
  }
}

// The next block, if the line, the data and the window are there for it.
void RingOfBlocks::send(std::uint32_t which) {
  Hop& hop = hops_[which];
  const std::uint64_t frames = std::min(kBlock, chunk_ - hop.sent % chunk_);
  if (hop.busy || hop.sent + frames > std::min(hop.may, all_)) return;
  if (hop.sent + frames > hop.acked + timing_.window) return;
  const Line& line = lines_[hop.forth.front()];
  const Picos each = timing_.data_bytes * line.byte;
  const Picos now = world_.now();
  const Picos last = now + static_cast<Picos>(frames - 1) * each;
  hop.sent += frames;
  hop.busy = true;
  schedule(which, last + each, {What::kFree});
  const Picos further = way(line, timing_.data_bytes) + timing_.pipeline;
  schedule(which, now + further, {What::kAtLine, which, 1, frames, last + further});
}

void RingOfBlocks::pass(const Happening& block) {
  const Hop& hop = hops_[block.hop];
  Line& line = lines_[hop.forth[block.place]];
  const Picos each = timing_.data_bytes * line.byte;
  const Picos first = std::max(world_.now(), line.free);
  const Picos last = std::max(first + static_cast<Picos>(block.frames - 1) * each, block.last);
  line = {line.byte, world_.now(), block.last, first, last + each};
  const Picos further = way(line, timing_.data_bytes);
  if (block.place + 1 == hop.forth.size()) {
    return schedule(block.hop, last + further, {What::kReceived, 0, 0, block.frames});
  }
  const Picos at = first + further + timing_.pipeline;
  schedule(block.hop, at,
           {What::kAtLine, 0, block.place + 1, block.frames, last + further + timing_.pipeline});
}

// The next host has a block: after the last of a chunk it may pass that on.
void RingOfBlocks::receive(std::uint32_t which, std::uint64_t frames) {
  Hop& hop = hops_[which];
  hop.got += frames;
  const bool ends = hop.got % chunk_ == 0;
  if (ends || hop.got - hop.said >= timing_.window / 4) say(which);
  if (!ends) return;
  const Picos here = world_.now() + timing_.pull;
  if (hop.got < all_) {
    const auto next = static_cast<std::uint32_t>((which + 1) % hops_.size());
    return schedule(next, here + timing_.push, {What::kChunk});
  }
  ended_ = std::max(ended_, here);
  --left_;
}

void RingOfBlocks::say(std::uint32_t which) {
  Hop& hop = hops_[which];
  const Picos now = world_.now();
  hop.said = hop.got;
  hop.said_at = now;
  schedule(which, now + hop.heartbeat, {What::kInterval});
  const Line& line = lines_[hop.back.front()];
  // The MAC holds a FIFO of data that goes before it.
  const bool busy = hops_[(which + 1) % hops_.size()].busy;
  const Picos behind = busy ? timing_.fifo_bytes * line.byte : 0;
  const Picos at =
      now + timing_.respond + behind + way(line, timing_.head_bytes) + timing_.pipeline;
  schedule(which, at, {What::kAckAtLine, which, 1, hop.got});
}

void RingOfBlocks::pass_back(const Happening& heartbeat) {
  const Hop& hop = hops_[heartbeat.hop];
  const Line& line = lines_[hop.back[heartbeat.place]];
  const Picos at = world_.now() + wait(line) + way(line, timing_.head_bytes);
  if (heartbeat.place + 1 == hop.back.size()) {
    return schedule(heartbeat.hop, at, {What::kAcked, 0, 0, heartbeat.frames});
  }
  schedule(heartbeat.hop, at + timing_.pipeline,
           {What::kAckAtLine, 0, heartbeat.place + 1, heartbeat.frames});
}

Picos RingOfBlocks::wait(const Line& line) const {
  const Picos now = world_.now();
  Picos through = line.free;
  if (now < line.came_last) {
    through = line.left_first + (line.free - line.left_first) * (now - line.came_first) /
                                    (line.came_last - line.came_first);
  }
  return std::max<Picos>(0, through - now);
}

Picos RingOfBlocks::way(const Line& line, Picos bytes) const {
  return (bytes - static_cast<Picos>(world::kGap)) * line.byte + timing_.latency;
}

void RingOfBlocks::schedule(std::uint32_t hop, Picos at, Happening what) {
  what.hop = hop;
  world_.schedule(hops_[hop].source, at, what);
}

}  // namespace catchment::performance
