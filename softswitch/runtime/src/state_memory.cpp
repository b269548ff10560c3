#include "state_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <system_error>

#include "catchment/common/seals.hpp"

namespace catchment::softswitch {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{1} << 21;
/// Larger blocks begin on multiples of this.
constexpr std::size_t kLargestAlignment = 1024;
/// Addresses only: a page is there once it is touched.
constexpr std::size_t kMostBytes = std::size_t{1} << 36;
constexpr std::size_t kLeastBytes = std::size_t{1} << 28;
constexpr std::size_t kSharedBytes = std::size_t{1} << 34;
/// Addresses of shared memory: below all position-independent executables, above heaps of others,
/// and where sanitizers have nothing of their own.
constexpr std::uintptr_t kFirstBase = 0x5500'0000'0000;
constexpr std::uintptr_t kLastBase = 0x5550'0000'0000;
constexpr std::size_t kPlaces = (kLastBase - kFirstBase) / kSharedBytes;
/// Blocks from this size on are zero whenever they are handed out.
constexpr std::size_t kCleared = std::size_t{1} << 16;

/// The size that a request is rounded up to, and the number of all blocks of that size.
struct BlockClass {
  std::size_t bytes;
  std::size_t number;
};

BlockClass class_of(std::size_t bytes) {
  if (bytes <= kPage) {
    const std::size_t rounded = std::bit_ceil(std::max(bytes, alignof(std::max_align_t)));
    return {rounded, static_cast<std::size_t>(std::countr_zero(rounded))};
  }
  const auto power = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
  const std::size_t quarter = ((bytes - 1) >> (power - 2)) & 3;
  return {(5 + quarter) << (power - 2), 4 * power + quarter};
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

StateMemory::StateMemory(Reach reach) {
  if (reach == Reach::shared) {
    map_shared();
  } else {
    map_process();
  }
}

void StateMemory::map_process() {
  for (capacity_ = kMostBytes; capacity_ >= kLeastBytes; capacity_ /= 2) {
    void* const base = mmap(nullptr, capacity_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) {
      base_ = static_cast<std::byte*>(base);
      return;
    }
  }
  throw std::bad_alloc();
}

void StateMemory::map_shared() {
  capacity_ = kSharedBytes;
  memory_ = FileDescriptor(memfd_create("catchment-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory_.valid() || ftruncate(memory_.get(), static_cast<off_t>(capacity_)) != 0 ||
      !seal(memory_.get(), kSizeSeals)) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make the state's shared memory");
  }
  std::array<std::size_t, kPlaces> places{};
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::shuffle(places, std::mt19937(std::random_device{}()));
  for (const std::size_t place : places) {
    place_ = ClaimedPlace::take(place);
    if (place_ && map_shared_at(place)) {
      return;
    }
  }
  // Others have them all. A process that is let in there, too, may have to keep to its rings.
  place_.reset();
  if (std::ranges::none_of(places, [this](std::size_t place) { return map_shared_at(place); })) {
    throw std::system_error(errno, std::generic_category(), "cannot map the state's shared memory");
  }
}

bool StateMemory::map_shared_at(std::size_t place) {
  auto* const wanted = reinterpret_cast<void*>(kFirstBase + place * kSharedBytes);
  void* const base = mmap(wanted, capacity_, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, memory_.get(), 0);
  if (base == wanted) {
    base_ = static_cast<std::byte*>(base);
    return true;
  }
  if (base != MAP_FAILED) {
    munmap(base, capacity_);  // a kernel that takes the address for a hint
  }
  return false;
}

StateMemory::~StateMemory() { munmap(base_, capacity_); }

bool StateMemory::contains(const void* place, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<std::uintptr_t>(place);
  const auto base = reinterpret_cast<std::uintptr_t>(base_);
  return at >= base && at - base <= used_ && bytes <= used_ - (at - base);
}

std::size_t StateMemory::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::byte* StateMemory::allocate_zeros(std::size_t bytes) {
  auto* const block = static_cast<std::byte*>(allocate(bytes, kCacheLine));
  if (class_of(std::max(bytes, kCacheLine)).bytes < kCleared) {
    std::memset(block, 0, bytes);
  }
  return block;
}

void* StateMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > capacity_ || alignment > kLargestAlignment) {
    throw std::bad_alloc();
  }
  const BlockClass size = class_of(std::max(bytes, alignment));
  const std::lock_guard lock(mutex_);
  std::vector<std::byte*>& free = free_.at(size.number);
  if (!free.empty()) {
    std::byte* const block = free.back();
    free.pop_back();
    in_use_ += size.bytes;
    return block;
  }
  const bool huge = size.bytes >= kHugePage;
  const std::size_t unit = huge ? kHugePage : std::min(std::bit_floor(size.bytes), kPage);
  const std::size_t begin = round_up(used_, unit);
  if (begin > capacity_ || size.bytes > capacity_ - begin) {
    throw std::bad_alloc();
  }
  std::size_t& blocks = blocks_.at(size.number);
  if (blocks == free.capacity()) {
    free.reserve(std::max<std::size_t>(8, 2 * blocks));
  }
  ++blocks;
  if (huge) {
    madvise(base_ + begin, size.bytes, MADV_HUGEPAGE);  // only a hint
  }
  used_ = begin + size.bytes;
  in_use_ += size.bytes;
  return base_ + begin;
}

void StateMemory::do_deallocate(void* block, std::size_t bytes, std::size_t alignment) {
  const BlockClass size = class_of(std::max(bytes, alignment));
  const int advice = memory_.valid() ? MADV_REMOVE : MADV_DONTNEED;
  if (size.bytes >= kCleared && madvise(block, size.bytes, advice) != 0) {
    std::memset(block, 0, size.bytes);
  }
  const std::lock_guard lock(mutex_);
  in_use_ -= size.bytes;
  free_.at(size.number).push_back(static_cast<std::byte*>(block));
}

}  // namespace catchment::softswitch
