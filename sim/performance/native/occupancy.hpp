// For how long how many slots were in use: a histogram by time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/world/native/time.hpp"

namespace catchment::performance {

class Occupancy {
 public:
  static constexpr std::size_t kBins = 64;

  // slots: that there are. `used` of them are in use from `now` on.
  void note(std::size_t used, std::size_t slots, world::Picos now) {
    time_[bin_] += now - since_;
    since_ = now;
    bin_ = used == 0 ? 0 : 1 + (used - 1) * (kBins - 1) / slots;
  }

  // As note(), of as many as before.
  void settle(world::Picos now) {
    time_[bin_] += now - since_;
    since_ = now;
  }
  // What came since it was settled with these times happens `times` more, and takes `by`.
  void repeat(const std::array<world::Picos, kBins>& before, std::uint64_t times, world::Picos by) {
    for (std::size_t i = 0; i < kBins; ++i) {
      time_[i] += static_cast<world::Picos>(times) * (time_[i] - before[i]);
    }
    since_ += by;
  }
  // How many are in use, as far as it is counted.
  [[nodiscard]] std::size_t bin() const { return bin_; }

  // Picoseconds by share of the slots: bin 0 is none, bin i is up to i / 63 of them.
  [[nodiscard]] const std::array<world::Picos, kBins>& time() const { return time_; }

 private:
  std::array<world::Picos, kBins> time_{};
  world::Picos since_ = 0;
  std::size_t bin_ = 0;
};

}  // namespace catchment::performance
