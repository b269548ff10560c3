#include "fault_lane.hpp"

#include <algorithm>

namespace catchment::softswitch {

namespace {

constexpr std::size_t kMostHeld = 16384;
/// A frame that waits to be overtaken waits no longer than this.
constexpr auto kOvertakenWithin = std::chrono::milliseconds(20);
constexpr std::uint64_t kMostOvertaking = 3;

}  // namespace

void FaultLane::set(const FaultRates& rates, std::uint64_t seed, std::uint64_t line) {
  rates_ = rates;
  counters_ = {};
  chances_ = {};
  chances_.loss = rates.loss;
  chances_.duplicate = rates.duplication;
  chances_.reorder = rates.reordering;
  stream_ = FaultStream(seed, line);
}

FaultLane::Clock::time_point FaultLane::due() const {
  auto out = held_.empty() ? Clock::time_point::max() : held_.front().due;
  for (const Held& one : overtaken_) {
    out = std::min(out, one.due);
  }
  return out;
}

void FaultLane::release(Clock::time_point now, std::size_t most, std::vector<Bytes>& out) {
  for (auto& bytes : lent_) {
    free_.push_back(std::move(bytes));
  }
  lent_.clear();
  std::size_t count = 0;
  for (; count < most && !held_.empty() && held_.front().due <= now; ++count) {
    std::ranges::pop_heap(held_, later);
    lend(std::move(held_.back().bytes), out);
    held_.pop_back();
  }
  for (auto one = overtaken_.begin(); count < most && one != overtaken_.end();) {
    if (one->due > now) {
      ++one;
      continue;
    }
    ++count;
    lend(std::move(one->bytes), out);
    one = overtaken_.erase(one);
  }
}

void FaultLane::admit(Bytes frame, Clock::time_point now, std::vector<Bytes>& out) {
  ++counters_.seen;
  const Fate fate = stream_.next(chances_);
  if (fate.lost) {
    ++counters_.lost;
    return;
  }
  counters_.duplicated += fate.copies == 2 ? 1 : 0;
  for (std::size_t i = 0; i < fate.copies; ++i) {
    const CopyFate& copy = fate.copy[i];
    counters_.reordered += copy.reordered ? 1 : 0;
    if (rates_.delay.count() > 0 && !copy.reordered) {
      ++counters_.delayed;
      const double jitter = 2 * fraction(copy.jitter) - 1;
      hold(frame, now + rates_.delay +
                      std::chrono::nanoseconds(static_cast<std::int64_t>(
                          jitter * static_cast<double>(rates_.jitter.count()))));
    } else if (rates_.delay.count() == 0 && copy.reordered) {
      if (has_room()) {
        const std::uint64_t overtaking = 1 + scaled(copy.hold, kMostOvertaking - 1);
        overtaken_.push_back({now + kOvertakenWithin, passed_ + overtaking, copy_of(frame)});
      } else {
        ++counters_.overflow;
      }
    } else {
      pass(frame, out);
    }
  }
}

bool FaultLane::has_room() const { return held_.size() + overtaken_.size() < kMostHeld; }

std::vector<std::uint8_t> FaultLane::copy_of(Bytes frame) {
  std::vector<std::uint8_t> bytes;
  if (!free_.empty()) {
    bytes = std::move(free_.back());
    free_.pop_back();
  }
  bytes.assign(frame.begin(), frame.end());
  return bytes;
}

void FaultLane::hold(Bytes frame, Clock::time_point due) {
  if (!has_room()) {
    ++counters_.overflow;
    return;
  }
  held_.push_back({due, order_++, copy_of(frame)});
  std::ranges::push_heap(held_, later);
}

void FaultLane::lend(std::vector<std::uint8_t>&& bytes, std::vector<Bytes>& out) {
  lent_.push_back(std::move(bytes));  // the bytes stay where they are
  out.emplace_back(lent_.back());
}

void FaultLane::pass(Bytes frame, std::vector<Bytes>& out) {
  out.push_back(frame);
  ++passed_;
  for (auto one = overtaken_.begin(); one != overtaken_.end();) {
    if (one->order > passed_) {
      ++one;
      continue;
    }
    lend(std::move(one->bytes), out);
    one = overtaken_.erase(one);
  }
}

}  // namespace catchment::softswitch
