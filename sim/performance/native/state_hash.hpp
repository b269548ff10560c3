// A fingerprint of a simulation's state, in which times count from now and sequence numbers from
// where their stream is: two states of one fingerprint go on alike. 128 bits, so that states that
// differ do not have the same one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "happening.hpp"

namespace catchment::performance {

struct Fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

class StateHash {
 public:
  // bases: where each stream is.
  StateHash(Picos now, const std::vector<Seq>& bases) : now_(now), bases_(bases) {}

  void number(std::uint64_t value) {
    ++taken_;
    print_.low = (print_.low ^ value) * 0x9E3779B97F4A7C15U;
    print_.low ^= print_.low >> 32U;
    print_.high = (std::rotl(print_.high, 23) + value) * 0xD6E8FEB86659FD93U;
    print_.high ^= print_.high >> 29U;
  }
  void time(Picos at) { number(static_cast<std::uint64_t>(at - now_)); }
  // From when something is free: what is past makes no difference.
  void free_at(Picos at) { time(std::max(at, now_)); }
  void seq(std::uint32_t stream, Seq seq) { number(distance(bases_[stream], seq)); }
  // One of several things that have no order.
  void unordered(StateHash one) {
    const Fingerprint print = one.print();
    sum_.low += print.low;
    sum_.high += print.high;
    taken_ += one.taken_;
  }

  [[nodiscard]] Seq base(std::uint32_t stream) const { return bases_[stream]; }
  // Numbers so far: what the fingerprint costs.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] Fingerprint print() {
    number(sum_.low);
    number(sum_.high);
    sum_ = {};
    return print_;
  }

 private:
  Picos now_;
  const std::vector<Seq>& bases_;
  Fingerprint print_;
  Fingerprint sum_;
  std::uint64_t taken_ = 0;
};

}  // namespace catchment::performance
