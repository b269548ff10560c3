// A device of a ring on a clock: a link to each neighbour, which carries a flit each way in every
// clock, and a register bus, behind a table of functions (as device.hpp has for a device with a
// MAC). A library offers its table by catchment_ring_device().
#pragma once

#include <cstddef>
#include <cstdint>

namespace catchment::rtl {

struct RingDevice {
  static constexpr std::uint32_t kAbi = 1;
  static constexpr std::size_t kMostWords = 20;

  std::uint32_t abi;
  std::uint32_t flit_bits;
  // One clock. What arrives from the neighbours, nullptr: nothing; whether the links to them take a
  // flit; what they take. A flit has so many words of 32 bits as its bits need.
  void (*clock)(void* device, const std::uint32_t* from_before, const std::uint32_t* from_next,
                std::uint32_t before_ready, std::uint32_t next_ready, std::uint32_t* to_before,
                std::uint32_t* to_next);
  // As of device.hpp.
  void (*begin_write)(void* device, std::uint32_t address, std::uint32_t value);
  void (*begin_read)(void* device, std::uint32_t address);
  std::uint32_t (*answer)(void* device, std::uint32_t* value);
  void (*give_up)(void* device);
  // Whether its interrupt is raised.
  std::uint32_t (*interrupt)(void* device);
};

}  // namespace catchment::rtl
