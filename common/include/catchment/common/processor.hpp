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
  /// How many of them this process may run on.
  static int count() {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  }
  /// The one that this thread is on.
  static int number() { return sched_getcpu(); }
  /// Takes this thread to another one of those that it may run on, all of which it may still run on
  /// then. Which one; -1: there is no other.
  static int leave() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
    cpu_set_t others = allowed;
    CPU_CLR(static_cast<unsigned>(number()), &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return -1;
    const int to = number();
    sched_setaffinity(0, sizeof allowed, &allowed);
    return to;
  }
  /// Lets the kernel run another thread first.
  static void yield() { sched_yield(); }
};

}  // namespace catchment
