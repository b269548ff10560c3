#include "catchment/shm/fork_guard.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace catchment::shm {

std::atomic<std::uint64_t> detail::generation{0};

namespace {

struct Registry {
  std::mutex mutex;
  std::vector<int> descriptors;
};

// Never destroyed: a process may fork while it ends.
Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

void before_fork() { registry().mutex.lock(); }

void in_parent() { registry().mutex.unlock(); }

// Between fork and whatever the child runs: system calls only.
void in_child() {
  detail::generation.fetch_add(1);
  Registry& known = registry();
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : known.descriptors) {
    // The number stays taken, so that code which closes it later closes no other file.
    if (nowhere < 0 || dup3(nowhere, descriptor, O_CLOEXEC) < 0) close(descriptor);
  }
  if (nowhere >= 0) close(nowhere);
  known.descriptors.clear();
  known.mutex.unlock();
}

void watch_forks() {
  [[maybe_unused]] static const int once = pthread_atfork(before_fork, in_parent, in_child);
}

}  // namespace

ForkGuard::ForkGuard() : generation_(process_generation()) { watch_forks(); }

PrivateDescriptor::PrivateDescriptor(int descriptor) : descriptor_(descriptor) {
  if (descriptor < 0) return;
  watch_forks();
  const std::lock_guard lock(registry().mutex);
  registry().descriptors.push_back(descriptor);
}

PrivateDescriptor::PrivateDescriptor(PrivateDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

PrivateDescriptor& PrivateDescriptor::operator=(PrivateDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

PrivateDescriptor::~PrivateDescriptor() {
  if (descriptor_ < 0) return;
  const std::lock_guard lock(registry().mutex);
  std::vector<int>& known = registry().descriptors;
  const auto place = std::ranges::find(known, descriptor_);
  if (place != known.end()) known.erase(place);
}

}  // namespace catchment::shm
