// What a waiting thread asks of the machine: the time, a short pause, the next thread's turn.
#pragma once

#include <sched.h>

#include "catchment/common/clock.hpp"

namespace catchment {

struct Processor {
  static Nanos now() { return monotonic_now(); }
  /// Tells the processor that this thread spins; it may serve its other hardware thread meanwhile.
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  /// Lets the kernel run another thread first.
  static void yield() { sched_yield(); }
};

}  // namespace catchment
