#include "fault_lane.hpp"

#include <algorithm>

namespace catchment::softswitch {

namespace {

constexpr std::size_t kMostHeld = 16384;
/// A frame that waits to be overtaken waits no longer than this.
constexpr auto kOvertakenWithin = std::chrono::milliseconds(20);
constexpr std::uint64_t kMostOvertaking = 3;
/// The time that a link may make up for, when nobody looked at its port for as long: the depth of
/// the token bucket.
constexpr auto kCatchUp = std::chrono::milliseconds(2);
constexpr double kBitsPerByte = 8;
constexpr double kNanosecond = 1e-9;

}  // namespace

void FaultLane::set(const FaultRates& rates, std::uint64_t seed, std::uint64_t line) {
  rates_ = rates;
  counters_ = {};
  chances_ = {};
  chances_.loss = rates.loss;
  chances_.duplicate = rates.duplication;
  chances_.reorder = rates.reordering;
  link_free_ = {};
  link_remainder_ns_ = 0;
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
    if (rates_.rate > 0) {
      const auto passed = through_link(frame.size(), now);
      if (!passed) {
        ++counters_.overflow;
        continue;
      }
      if (rates_.delay.count() == 0 && copy.reordered) {
        // It leaves just after one to three frames of its length that come behind it.
        const auto frame_time = std::chrono::nanoseconds(static_cast<std::int64_t>(
            kBitsPerByte * static_cast<double>(frame.size()) / rates_.rate / kNanosecond));
        const std::uint64_t overtaking = 1 + scaled(copy.hold, kMostOvertaking - 1);
        hold(frame, *passed + frame_time * overtaking + std::chrono::nanoseconds(1));
      } else {
        counters_.delayed += rates_.delay.count() > 0 && !copy.reordered ? 1 : 0;
        const auto due = *passed + (copy.reordered ? Clock::duration(0) : delay_of(copy));
        if (due <= now && held_.empty()) {
          pass(frame, out);
        } else {
          hold(frame, due);
        }
      }
    } else if (rates_.delay.count() > 0 && !copy.reordered) {
      ++counters_.delayed;
      hold(frame, now + delay_of(copy));
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

FaultLane::Clock::duration FaultLane::delay_of(const CopyFate& copy) const {
  const double jitter = 2 * fraction(copy.jitter) - 1;
  return rates_.delay + std::chrono::nanoseconds(static_cast<std::int64_t>(
                            jitter * static_cast<double>(rates_.jitter.count())));
}

std::optional<FaultLane::Clock::time_point> FaultLane::through_link(std::size_t bytes,
                                                                    Clock::time_point now) {
  if (link_free_ < now - kCatchUp) {
    link_free_ = now - kCatchUp;
    link_remainder_ns_ = 0;
  }
  const double seconds = std::chrono::duration<double>(link_free_ - now).count();
  const double waiting = seconds * rates_.rate / kBitsPerByte;
  if (waiting + static_cast<double>(bytes) > static_cast<double>(rates_.queue)) {
    return std::nullopt;
  }
  const double takes =
      kBitsPerByte * static_cast<double>(bytes) / rates_.rate / kNanosecond + link_remainder_ns_;
  const auto whole = static_cast<std::int64_t>(takes);
  link_remainder_ns_ = takes - static_cast<double>(whole);
  link_free_ += std::chrono::nanoseconds(whole);
  return std::max(link_free_, now);
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
