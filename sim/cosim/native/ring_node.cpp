#include "ring_node.hpp"

namespace catchment::cosim {

void FlitLine::send(const Flit& flit, std::uint32_t bits, Picos now) {
  const world::Transit transit = line.send_bare((bits + 7) / 8, now);
  if (transit.copies == 0) return;
  const world::Copy& copy = transit.copy[0];
  flying_.push_back({copy.last, flit});
  if (copy.damaged) {
    const auto bit = static_cast<std::uint32_t>(line.counts().frames % bits);
    flying_.back().flit[bit / 32] ^= 1U << bit % 32;
  }
}

const std::uint32_t* FlitLine::arrived(Picos now) {
  if (flying_.empty() || flying_.front().at > now) return nullptr;
  last_ = flying_.front().flit;
  flying_.pop_front();
  return last_.data();
}

void RingNode::run(Picos now, std::uint64_t clocks) {
  for (; clocks != 0; --clocks, now += kClock) {
    registers.drive();
    const bool before_ready = before_.out->ready(now);
    const bool next_ready = next_.out->ready(now);
    Flit to_before{};
    Flit to_next{};
    table_.clock(device_, before_.in->arrived(now), next_.in->arrived(now), before_ready ? 1 : 0,
                 next_ready ? 1 : 0, to_before.data(), to_next.data());
    if (before_ready) before_.out->send(to_before, table_.flit_bits, now);
    if (next_ready) next_.out->send(to_next, table_.flit_bits, now);
    registers.sample();
    if (!watches_.empty() && table_.interrupt(device_) != 0) {
      for (const auto& watch : watches_) watch->at = now + kClock;
      watches_.clear();
    }
  }
}

std::shared_ptr<Watch> RingNode::watch() {
  watches_.push_back(std::make_shared<Watch>());
  return watches_.back();
}

}  // namespace catchment::cosim
