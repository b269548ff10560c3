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
