#include "gate.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <ctime>
#include <system_error>

#include "catchment/common/clock.hpp"

namespace catchment::softswitch {

namespace {

void check(int error, const char* what) {
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), what);
  }
}

constexpr int kLastLooks = 100;
constexpr auto kLastPause = std::chrono::milliseconds(10);

/// Sleeping and waking across processes, which std::atomic does within one only. False: it is too
/// late.
bool sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec* until) {
  return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, until, nullptr,
                 FUTEX_BITSET_MATCH_ANY) == 0 ||
         errno != ETIMEDOUT;
}
void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

GateState::GateState() {
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free &&
                sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  pthread_mutexattr_t kind;
  check(pthread_mutexattr_init(&kind), "cannot describe the data plane's lock");
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  const int error = pthread_mutex_init(&mutex, &kind);
  pthread_mutexattr_destroy(&kind);
  check(error, "cannot make the data plane's lock");
}

void note_torn(GateState& state) {
  Soundness before = Soundness::sound;
  state.soundness.compare_exchange_strong(before, Soundness::torn);
}

void note_death(GateState& state) {
  note_torn(state);
  pthread_mutex_consistent(&state.mutex);
}

void Gate::close() {
  state_.soundness.store(Soundness::closed);
  for (int looks = 0; looks < kLastLooks; ++looks) {
    const int error = pthread_mutex_trylock(&state_.mutex);
    if (error == EOWNERDEAD) {
      note_death(state_);
    }
    if (error != EBUSY) {
      unlock();
      return;
    }
    std::this_thread::sleep_for(kLastPause);
  }
}

void Gate::lock() {
  if (const int error = pthread_mutex_lock(&state_.mutex); error == EOWNERDEAD) {
    note_death(state_);
  } else {
    check(error, "cannot take the data plane's lock");
  }
  if (state_.soundness.load(std::memory_order_relaxed) == Soundness::torn) [[unlikely]] {
    repair_();
    state_.soundness.store(Soundness::sound);  // last
  }
}

void Gate::lock_with_priority() {
  state_.arrived.fetch_add(1);
  lock();
  state_.entered.fetch_add(1);
  wake_all(state_.entered);
}

bool let_in(GateState& state, std::uint32_t arrived, std::int64_t until_ns) {
  const timespec until{.tv_sec = until_ns / kSecond, .tv_nsec = until_ns % kSecond};
  for (auto entered = state.entered.load(); missing(state, arrived);
       entered = state.entered.load()) {
    if (!sleep_while(state.entered, entered, until_ns == 0 ? nullptr : &until)) {
      return !missing(state, arrived);
    }
  }
  return true;
}

}  // namespace catchment::softswitch
