#include "state_mapping.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "catchment/common/seals.hpp"
#include "catchment/shm/fork_guard.hpp"

namespace catchment::softswitch {

namespace {

struct Registry {
  std::mutex mutex;
  std::condition_variable unmapped;
  std::map<StateMapping::Place, std::weak_ptr<StateMapping>> mapped;
};

Registry& registry() { return shm::of_process<Registry>(); }

Status refused(const std::string& why) {
  return {StatusCode::failed_precondition, "cannot run the switch's program here: " + why};
}

Result<SharedState*> map(int memory, const struct stat& found) {
  if (!sealed(memory, kSizeSeals)) {
    return refused("the size of its memory is not sealed");
  }
  // Only what never changes is read before the memory is mapped.
  alignas(SharedState) std::array<std::byte, sizeof(SharedState)> head{};
  const auto* const state = reinterpret_cast<const SharedState*>(head.data());
  if (pread(memory, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()) ||
      state->magic != kStateMagic) {
    return refused("its memory does not begin with TCHSTATE");
  }
  if (state->version != kStateVersion || state->program_abi != rt::kProgramAbi) {
    return refused("it is of another version than this library");
  }
  if (state->capacity != static_cast<std::uint64_t>(found.st_size)) {
    return refused("its memory has " + std::to_string(found.st_size) + " bytes, not " +
                   std::to_string(state->capacity));
  }
  void* const base = mmap(state->base, state->capacity, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, memory, 0);
  if (base != state->base) {
    const std::string why = base == MAP_FAILED ? std::strerror(errno) : "another place was given";
    if (base != MAP_FAILED) {
      munmap(base, state->capacity);
    }
    return refused("its memory cannot be mapped where it must lie: " + why);
  }
  return static_cast<SharedState*>(base);
}

}  // namespace

Result<std::shared_ptr<StateMapping>> StateMapping::open(FileDescriptor memory) {
  struct stat found{};
  if (fstat(memory.get(), &found) != 0) {
    return refused(std::string("its memory cannot be looked at: ") + std::strerror(errno));
  }
  Registry& all = registry();
  const Place place{found.st_dev, found.st_ino};
  std::unique_lock lock(all.mutex);
  // One that nobody has any more still takes its addresses until another thread has ended it.
  all.unmapped.wait(lock, [&] {
    const auto entry = all.mapped.find(place);
    return entry == all.mapped.end() || !entry->second.expired();
  });
  if (const auto entry = all.mapped.find(place); entry != all.mapped.end()) {
    if (auto present = entry->second.lock()) {
      return present;
    }
  }
  const auto state = map(memory.get(), found);
  if (!state.ok()) {
    return state.status();
  }
  std::shared_ptr<StateMapping> mapped(new StateMapping(std::move(memory), place, *state.value()));
  all.mapped[place] = mapped;
  return mapped;
}

StateMapping::~StateMapping() {
  Registry& all = registry();
  {
    const std::lock_guard lock(all.mutex);
    munmap(&state_, state_.capacity);
    all.mapped.erase(place_);
  }
  all.unmapped.notify_all();
}

bool StateMapping::contains(const void* place, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(place);
  const auto base = reinterpret_cast<std::uintptr_t>(&state_);
  return at >= base && at - base <= state_.capacity && bytes <= state_.capacity - (at - base);
}

}  // namespace catchment::softswitch
