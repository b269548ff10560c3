// What a process has for itself, and a forked child of it must not use: a port's rings have one
// reader and one writer, and a connection that a child keeps open hides its parent's end.
#pragma once

#include <atomic>
#include <cstdint>

namespace catchment::shm {

namespace detail {
extern std::atomic<std::uint64_t> generation;
}

/// Another number in every forked child than in its parent; counts once a ForkGuard was made.
inline std::uint64_t process_generation() {
  return detail::generation.load(std::memory_order_relaxed);
}

/// Knows whether the process that made it has been left for a forked child.
class ForkGuard {
 public:
  ForkGuard();
  [[nodiscard]] bool in_child() const { return generation_ != process_generation(); }

 private:
  std::uint64_t generation_;
};

/// The T of this process, made when it is first asked for, which lives as long as the process. A
/// forked child has another one: in its parent's a mutex may be locked by a thread that it lacks.
template <class T>
T& of_process() {
  struct Guarded {
    ForkGuard guard;
    T value;
  };
  static std::atomic<Guarded*> current{nullptr};
  Guarded* found = current.load();
  while (found == nullptr || found->guard.in_child()) {
    auto* const made = new Guarded;
    if (current.compare_exchange_strong(found, made)) {
      return made->value;
    }
    delete made;
  }
  return found->value;
}

/// Keeps a descriptor to this process: in a forked child its number leads to /dev/null.
class PrivateDescriptor {
 public:
  explicit PrivateDescriptor(int descriptor);
  PrivateDescriptor(PrivateDescriptor&& other) noexcept;
  PrivateDescriptor& operator=(PrivateDescriptor&& other) noexcept;
  PrivateDescriptor(const PrivateDescriptor&) = delete;
  PrivateDescriptor& operator=(const PrivateDescriptor&) = delete;
  ~PrivateDescriptor();

 private:
  int descriptor_ = -1;
};

}  // namespace catchment::shm
