// Monotonic time in nanoseconds, as every protocol, timer and waiter counts it.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace catchment {

using Nanos = std::int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000 * kMicrosecond;
inline constexpr Nanos kSecond = 1'000 * kMillisecond;
inline constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

inline Nanos time_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

inline Nanos monotonic_now() { return time_of(CLOCK_MONOTONIC); }

/// The same clock as the kernel's last tick left it, up to 10 ms ago: a look takes a few
/// nanoseconds.
inline Nanos coarse_now() { return time_of(CLOCK_MONOTONIC_COARSE); }

/// The same time as monotonic_now() counts it: steady_clock reads CLOCK_MONOTONIC.
inline Nanos monotonic(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace catchment
