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
  /// Calls `use` with the number of each of those that this thread may run on.
  template <class Use>
  static void for_each(Use&& use) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int left = CPU_COUNT(&allowed);
    for (int number = 0; left != 0; ++number) {
      if (!CPU_ISSET(static_cast<unsigned>(number), &allowed)) continue;
      use(number);
      --left;
    }
  }
  /// The one that this thread is on.
  static int number() { return sched_getcpu(); }
  /// Takes this thread to one of those that it may run on, all of which it may still run on then.
  /// Whether it could.
  static bool go_to(int to) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(to), &one);
    CPU_AND(&one, &one, &allowed);
    if (CPU_COUNT(&one) == 0 || sched_setaffinity(0, sizeof one, &one) != 0) return false;
    sched_setaffinity(0, sizeof allowed, &allowed);
    return true;
  }
  /// Lets the kernel run another thread first.
  static void yield() { sched_yield(); }
};

}  // namespace catchment
