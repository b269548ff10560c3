#include "device_node.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace catchment::cosim {

using rtl::Beat;

void DeviceNode::arrive(Arrival&& arrival) {
  auto place = arrivals_.end();
  while (place != arrivals_.begin() && std::prev(place)->first > arrival.first) --place;
  if (place == arrivals_.begin() && place_ != 0) ++place;  // it has begun
  arrivals_.insert(place, std::move(arrival));
}

void DeviceNode::run(Picos now, std::uint64_t clocks) {
  for (; clocks != 0; --clocks, now += kClock) {
    registers.drive();
    const bool ready = line_ != nullptr && line_->backlog(now) <= fifo_bytes_;
    if (!ready) ++counts_.tx_full_clocks;
    Beat tx;
    if (table_.clock(device_, offer(now), ready ? 1 : 0, &tx) != 0) take(tx, now);
    registers.sample();
    look(now);
  }
}

std::shared_ptr<Watch> DeviceNode::watch(const volatile std::uint8_t* byte) {
  auto watch = std::make_shared<Watch>();
  watches_.emplace_back(byte, watch);
  return watch;
}

// The beat whose bytes have arrived by `now`.
const Beat* DeviceNode::offer(Picos now) {
  if (arrivals_.empty()) return nullptr;
  const Arrival& frame = arrivals_.front();
  const std::size_t size = frame.bytes->size();
  const std::size_t count = std::min(sizeof rx_.data, size - place_);
  const bool last = place_ + count == size;
  const Picos byte = line_->timing().byte;
  const auto bytes = kPreamble + (last ? std::max(size, kShortest) + kFcs : place_ + count);
  if (frame.first + static_cast<Picos>(bytes) * byte > now) return nullptr;
  std::memcpy(rx_.data, frame.bytes->data() + place_, count);
  rx_.keep = count == sizeof rx_.data ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  rx_.last = last ? 1 : 0;
  rx_.user = last && frame.damaged ? 1 : 0;
  place_ += count;
  if (last) {
    arrivals_.pop_front();
    place_ = 0;
  }
  ++counts_.rx_beats;
  return &rx_;
}

void DeviceNode::take(const Beat& beat, Picos now) {
  if (part_.empty()) part_first_ = now;
  ++counts_.tx_beats;
  for (std::size_t i = 0; i < sizeof beat.data; ++i) {
    if ((beat.keep >> i & 1U) != 0) part_.push_back(beat.data[i]);
  }
  if (beat.last == 0) return;
  if (beat.user != 0) ++counts_.cut_frames;
  line_->put(std::make_shared<const Bytes>(std::move(part_)), beat.user != 0, part_first_, now);
  part_.clear();
}

void DeviceNode::look(Picos now) {
  std::erase_if(watches_, [&](const auto& one) {
    if (*one.first == 0) return false;
    one.second->at = now + kClock;
    return true;
  });
}

}  // namespace catchment::cosim
