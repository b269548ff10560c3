// Stateful externs as the packet thread sees them: registers, counters, meters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "catchment/common/fetch.hpp"
#include "catchment/softswitch/rt/bits.hpp"
#include "catchment/softswitch/rt/table.hpp"

namespace catchment::softswitch::rt {

/// One register array. Cells of arrays that are used together lie side by side: `stride` is the
/// distance between two cells of one array, so that all cells of one index are one run of cache
/// lines.
template <unsigned W>
struct Register {
  std::uint8_t* base = nullptr;
  std::uint64_t size = 0;
  std::uint64_t stride = sizeof(bits<W>);

  /// The cell at `index`; zero outside the array.
  [[gnu::always_inline]] bits<W> read(std::uint64_t index) const {
    bits<W> value{};
    if (index < size) {
      std::memcpy(&value, base + index * stride, sizeof value);
    }
    return value;
  }
  /// Changes the cell at `index`; nothing outside the array.
  [[gnu::always_inline]] void write(std::uint64_t index, const bits<W>& value) const {
    if (index < size) {
      std::memcpy(base + index * stride, &value, sizeof value);
    }
  }
  /// The place of the cell at `index`; nullptr outside the array.
  [[nodiscard, gnu::always_inline]] const std::uint8_t* find(std::uint64_t index) const {
    return index < size ? base + index * stride : nullptr;
  }
  /// Asks for the cells at `index` of this array and of all that lie side by side behind it, to be
  /// changed.
  [[gnu::always_inline]] void fetch(std::uint64_t index) const {
    if (index < size) {
      fetch_to_change(base + index * stride, stride);
    }
  }
  /// The k-th of the arrays laid out side by side.
  [[gnu::always_inline]] Register neighbour(std::size_t k) const {
    return {base + k * sizeof(bits<W>), size, stride};
  }
};

struct CounterState {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

struct Counter {
  CounterState* cells = nullptr;
  std::uint64_t size = 0;

  void count(std::uint64_t index, std::uint64_t length) const {
    if (index < size) {
      cells[index].packets += 1;
      cells[index].bytes += length;
    }
  }
};

/// A two-rate three-colour marker as BMv2 runs it: the peak bucket is asked first, each bucket is
/// charged when passed.
struct MeterState {
  bool configured = false;
  std::uint64_t since_us = 0;
  struct Bucket {
    double per_us = 0;
    std::uint64_t burst = 0;
    std::uint64_t tokens = 0;
    double granted = 0;  // since the meter was configured, in whole units
  };
  Bucket peak;
  Bucket committed;
  CounterState counts[3];  // by colour

  static bool take(Bucket& bucket, std::uint64_t elapsed_us, std::uint64_t units) {
    const double granted = std::floor(static_cast<double>(elapsed_us) * bucket.per_us);
    const double grant = granted - bucket.granted;
    const std::uint64_t missing = bucket.burst - bucket.tokens;
    // What fills the bucket may be more than an integer holds.
    const bool fills = grant >= static_cast<double>(missing);
    bucket.tokens += fills ? missing : static_cast<std::uint64_t>(grant);
    bucket.granted = granted;
    if (bucket.tokens < units) {
      return false;
    }
    bucket.tokens -= units;
    return true;
  }
  /// 0 green, 1 yellow, 2 red. `units` is what the frame costs, `length` its bytes.
  std::uint32_t execute(std::uint64_t now_us, std::uint64_t units, std::uint64_t length) {
    const std::uint32_t colour = mark(now_us, units);
    counts[colour].packets += 1;
    counts[colour].bytes += length;
    return colour;
  }

 private:
  std::uint32_t mark(std::uint64_t now_us, std::uint64_t units) {
    if (!configured) {
      return 0;
    }
    const std::uint64_t elapsed = now_us - since_us;
    if (!take(peak, elapsed, units)) {
      return 2;
    }
    return take(committed, elapsed, units) ? 0 : 1;
  }
};

struct Meter {
  MeterState* cells = nullptr;
  std::uint64_t size = 0;
  bool by_bytes = false;

  /// The color of the packet; `before` where `index` is outside the array.
  std::uint32_t execute(std::uint64_t index, std::uint64_t now_us, std::uint64_t length,
                        std::uint32_t before) const {
    return index < size ? cells[index].execute(now_us, by_bytes ? length : 1, length) : before;
  }
};

}  // namespace catchment::softswitch::rt
