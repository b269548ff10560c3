// The memory of everything that a frame reads or writes besides itself: registers, counters,
// meters, tables with their rows and arguments, replicas, counters of ports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "catchment/common/cache_line.hpp"
#include "catchment/common/file_descriptor.hpp"
#include "claimed_place.hpp"

namespace catchment::softswitch {

/// One run of addresses, and an allocator within it. Only the control side allocates. What it
/// keeps to itself (which blocks are free) lies outside, so that nobody who can write to the
/// memory can mislead it. Giving a block back needs no memory, and so never fails.
class StateMemory : public std::pmr::memory_resource {
 public:
  enum class Reach : std::uint8_t { process, shared };

  /// `process`: of this process alone. `shared`: a memfd whose size is sealed, at an address that
  /// others are likely to have free, too. Throws std::bad_alloc and std::system_error.
  explicit StateMemory(Reach reach = Reach::process);
  ~StateMemory() override;
  StateMemory(const StateMemory&) = delete;
  StateMemory& operator=(const StateMemory&) = delete;

  /// Whether all of these bytes lie in what has been handed out so far.
  [[nodiscard]] bool contains(const void* place, std::size_t bytes) const;
  /// Bytes that are handed out now, with what rounding adds.
  [[nodiscard]] std::size_t in_use() const;
  /// What others map at base(): -1 unless it is shared.
  [[nodiscard]] int descriptor() const { return memory_.get(); }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  /// Bytes that are zero, at the beginning of a cache line; pages are touched as they are used.
  [[nodiscard]] std::byte* allocate_zeros(std::size_t bytes);

 protected:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;

 private:
  /// Sizes of blocks: the powers of two up to a page, then four to each power of two.
  static constexpr std::size_t kClasses = std::size_t{4} * 48;

  void map_process();
  void map_shared();
  bool map_shared_at(std::size_t place);
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override;
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  mutable std::mutex mutex_;  // programs are made, and end, beside control calls
  FileDescriptor memory_;
  std::optional<ClaimedPlace> place_;
  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;  // bytes from the base that have ever been handed out
  std::size_t in_use_ = 0;
  std::array<std::vector<std::byte*>, kClasses> free_;  // by class, each with room for all
  std::array<std::size_t, kClasses> blocks_{};          // by class: those ever handed out
};

/// Gives an object back to the memory that it lies in.
struct GiveBack {
  StateMemory* memory = nullptr;

  template <class T>
  void operator()(T* object) const {
    std::pmr::polymorphic_allocator<>(memory).delete_object(object);
  }
};

/// An object in a StateMemory.
template <class T>
using InState = std::unique_ptr<T, GiveBack>;

/// Makes an object there; containers in it that ask for an allocator get the memory, too.
template <class T, class... Arguments>
InState<T> make_in(StateMemory& memory, Arguments&&... arguments) {
  return InState<T>(std::pmr::polymorphic_allocator<>(&memory).new_object<T>(
                        std::forward<Arguments>(arguments)...),
                    GiveBack{&memory});
}

/// An array in a StateMemory, all of whose bytes are zero at first; its address stays.
template <class T>
class StateArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kCacheLine);

 public:
  StateArray(StateMemory& memory, std::size_t size)
      : memory_(&memory),
        size_(size),
        data_(size == 0 ? nullptr : reinterpret_cast<T*>(memory.allocate_zeros(size * sizeof(T)))) {
  }
  StateArray(StateArray&& other) noexcept
      : memory_(other.memory_),
        size_(std::exchange(other.size_, 0)),
        data_(std::exchange(other.data_, nullptr)) {}
  StateArray& operator=(StateArray&&) = delete;
  StateArray(const StateArray&) = delete;
  StateArray& operator=(const StateArray&) = delete;
  ~StateArray() {
    if (data_ != nullptr) {
      memory_->deallocate(data_, size_ * sizeof(T), kCacheLine);
    }
  }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T& operator[](std::size_t i) const { return data_[i]; }

 private:
  StateMemory* memory_;
  std::size_t size_;
  T* data_;
};

}  // namespace catchment::softswitch
