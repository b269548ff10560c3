// Numbers of 16 bits in network byte order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace catchment {

inline std::uint16_t load16(const std::uint8_t* at) {
  return static_cast<std::uint16_t>(at[0] << 8 | at[1]);
}

inline void store16(std::uint8_t* at, std::size_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}

}  // namespace catchment
