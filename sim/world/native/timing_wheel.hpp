// A queue of events in the order (time, source, number), the number being that of the push: a
// timing wheel of buckets of 4.1 ns. A bucket is sorted when the clock reaches it, by keys, its
// events staying where they are; events beyond the wheel's turn of 268 us wait in one unsorted list
// a turn.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/world/native/time.hpp"

namespace catchment::world {

template <typename Payload>
struct Event {
  Picos at;
  std::uint32_t source;
  Payload payload;
};

template <typename Payload>
class TimingWheel {
 public:
  using Entry = Event<Payload>;

  TimingWheel() : buckets_(kBuckets) {}

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Times are not negative.
  [[gnu::always_inline]] void push(Entry&& event) {
    ++size_;
    const std::int64_t bucket = event.at >> kBucketBits;
    if (bucket > open_ && bucket >> kTurnBits == turn_) {
      put(bucket, std::move(event));
    } else {
      put_elsewhere(bucket, std::move(event));
    }
  }

  /// The first event, if it happens before `end`, else null; it is there until the next call.
  [[nodiscard]] const Entry* first(Picos end) {
    if (order_.empty() && !open_next(end)) return nullptr;
    const Entry& event = ready_[place_of(order_.back())];
    return event.at < end ? &event : nullptr;
  }

  /// Takes out what first() has shown.
  Entry pop() {
    const std::size_t place = place_of(order_.back());
    order_.pop_back();
    --size_;
    return std::move(ready_[place]);
  }

  /// Shows visit() every event; those of one time and source in the order of their pushes.
  template <typename Visit>
  void each(Visit&& visit) const {
    for (auto key = order_.rbegin(); key != order_.rend(); ++key) visit(ready_[place_of(*key)]);
    for (std::size_t place = next_used(0); place != kBuckets; place = next_used(place + 1)) {
      for (const Entry& event : buckets_[place]) visit(event);
    }
    for (const auto& turn : beyond_) {
      for (const Entry& event : turn.second) visit(event);
    }
  }

 private:
  static constexpr int kBucketBits = 12;  // of picoseconds
  static constexpr int kTurnBits = 16;    // of buckets
  static constexpr std::size_t kBuckets = std::size_t{1} << kTurnBits;
  static constexpr std::size_t kWords = kBuckets / 64;

  // Time, source, and the place in ready_, which grows with the pushes.
  using Key = unsigned __int128;

  static Key key_of(const Entry& event, std::size_t place) {
    return static_cast<Key>(event.at) << 64U | static_cast<std::uint64_t>(event.source) << 32U |
           place;
  }
  static std::size_t place_of(Key key) { return static_cast<std::uint32_t>(key); }

  [[gnu::noinline]] void put_elsewhere(std::int64_t bucket, Entry event) {
    if (bucket > open_) {
      beyond_[bucket >> kTurnBits].push_back(std::move(event));
      return;
    }
    if (order_.empty()) ready_.clear();
    const Key key = key_of(event, ready_.size());
    ready_.push_back(std::move(event));
    order_.insert(std::upper_bound(order_.begin(), order_.end(), key, std::greater<>()), key);
  }

  [[gnu::always_inline]] void put(std::int64_t bucket, Entry&& event) {
    const std::size_t place = static_cast<std::size_t>(bucket) % kBuckets;
    std::vector<Entry>& events = buckets_[place];
    if (events.empty()) use(place);
    events.push_back(std::move(event));
  }

  // A bucket gets its first event.
  [[gnu::noinline]] void use(std::size_t place) {
    if (buckets_[place].capacity() == 0 && !spare_.empty()) {
      buckets_[place] = std::move(spare_.back());
      spare_.pop_back();
    }
    used_[place / 64] |= std::uint64_t{1} << place % 64;
    used_words_[place / 4096] |= std::uint64_t{1} << place / 64 % 64;
  }

  // The first used place of the turn that is not before `from`, or kBuckets.
  [[nodiscard]] std::size_t next_used(std::size_t from) const {
    if (from >= kBuckets) return kBuckets;
    std::size_t word = from / 64;
    if (const std::uint64_t bits = used_[word] >> from % 64; bits != 0) {
      return from + static_cast<std::size_t>(std::countr_zero(bits));
    }
    ++word;
    for (std::size_t group = word / 64; group < used_words_.size(); ++group) {
      std::uint64_t bits = used_words_[group];
      if (group == word / 64) bits = bits >> word % 64 << word % 64;
      if (bits == 0) continue;
      word = 64 * group + static_cast<std::size_t>(std::countr_zero(bits));
      return 64 * word + static_cast<std::size_t>(std::countr_zero(used_[word]));
    }
    return kBuckets;
  }

  // Opens the next bucket that begins before `end`; nothing is left of the one before it.
  bool open_next(Picos end) {
    if (size_ == 0) return false;
    const std::int64_t base = turn_ << kTurnBits;
    std::size_t place =
        next_used(static_cast<std::size_t>(std::max<std::int64_t>(open_ + 1 - base, 0)));
    if (place == kBuckets) {
      const auto turn = beyond_.begin();  // there is one: the wheel is not empty
      if (turn->first << (kTurnBits + kBucketBits) >= end) return false;
      turn_ = turn->first;
      for (Entry& event : turn->second) put(event.at >> kBucketBits, std::move(event));
      beyond_.erase(turn);
      open_ = (turn_ << kTurnBits) - 1;
      place = next_used(0);
    }
    const std::int64_t bucket = (turn_ << kTurnBits) + static_cast<std::int64_t>(place);
    if (bucket << kBucketBits >= end) return false;
    open_ = bucket;
    // The memory of a bucket serves the next one that gets an event: it stays in the caches, and no
    // more of it is taken than events are due at a time.
    if (ready_.capacity() != 0) {
      ready_.clear();
      spare_.push_back(std::move(ready_));
    }
    ready_ = std::exchange(buckets_[place], {});
    used_[place / 64] &= ~(std::uint64_t{1} << place % 64);
    if (used_[place / 64] == 0) used_words_[place / 4096] &= ~(std::uint64_t{1} << place / 64 % 64);
    // Mostly they were pushed in their order.
    for (std::size_t i = ready_.size(); i-- != 0;) order_.push_back(key_of(ready_[i], i));
    if (!std::is_sorted(order_.begin(), order_.end(), std::greater<>())) {
      std::sort(order_.begin(), order_.end(), std::greater<>());
    }
    return true;
  }

  std::vector<std::vector<Entry>> buckets_;  // of this turn
  std::vector<std::vector<Entry>> spare_;    // empty, their memory is not
  std::array<std::uint64_t, kWords> used_{};
  std::array<std::uint64_t, kWords / 64> used_words_{};
  std::map<std::int64_t, std::vector<Entry>> beyond_;  // by turn
  std::vector<Entry> ready_;  // of the open bucket and those before it, as they were pushed
  std::vector<Key> order_;    // of those that are left, the first one at the end
  std::int64_t open_ = -1;
  std::int64_t turn_ = 0;
  std::size_t size_ = 0;
};

}  // namespace catchment::world
