// The event kernel: a clock in picoseconds and what happens at which time. Of two events of one
// time the one of the lower source comes first, and one source's in the order in which it made
// them, so that an outcome does not depend on which was asked first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "sim/world/native/time.hpp"
#include "sim/world/native/timing_wheel.hpp"

namespace catchment::world {

template <typename Payload>
class World {
 public:
  using Entry = Event<Payload>;

  explicit World(std::uint64_t seed) : seed_(seed) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] Picos now() const { return now_; }
  [[nodiscard]] std::size_t pending() const { return wheel_.size(); }

  /// Numbers of sources: lines come before nodes, each in the order of these calls.
  std::uint32_t add_line() { return lines_++; }
  std::uint32_t add_node() { return kNode + nodes_++; }

  [[gnu::always_inline]] void schedule(std::uint32_t source, Picos at, Payload payload) {
    if (at < now_) throw_past();
    wheel_.push({at, source, std::move(payload)});
  }

  /// Carries out the next event if it happens before `end`: visit(event), the clock at its time.
  template <typename Visit>
  bool step(Picos end, Visit&& visit) {
    const Entry* const first = wheel_.first(end);
    if (first == nullptr) return false;
    now_ = first->at;
    visit(wheel_.pop());
    return true;
  }

  /// Carries out all that happens before `end`, then sets the clock to it.
  template <typename Visit>
  void run(Picos end, Visit&& visit) {
    while (step(end, visit)) {
    }
    if (end > now_) now_ = end;
  }

  /// Shows visit() every event that is due, in no order.
  template <typename Visit>
  void each(Visit&& visit) const {
    wheel_.each(visit);
  }

  /// Sets the clock `by` ahead without anything happening: change(event) moves what is due to when
  /// it is due then, not before that time.
  template <typename Change>
  void skip(Picos by, Change&& change) {
    TimingWheel<Payload> wheel;
    now_ += by;
    wheel_.each([&](Entry event) {
      change(event);
      if (event.at < now_) throw std::logic_error("an event that is due cannot be skipped");
      wheel.push(std::move(event));
    });
    wheel_ = std::move(wheel);
  }

 private:
  static constexpr std::uint32_t kNode = 1U << 31U;

  [[noreturn, gnu::noinline]] static void throw_past() {
    throw std::logic_error("an event cannot happen before the world's time");
  }

  std::uint64_t seed_;
  Picos now_ = 0;
  TimingWheel<Payload> wheel_;
  std::uint32_t lines_ = 0;
  std::uint32_t nodes_ = 0;
};

}  // namespace catchment::world
