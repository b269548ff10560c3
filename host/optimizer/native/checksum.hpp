// CRC-32C (Castagnoli).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace catchment::optimizer {

// CRC-32C of `bytes`, continuing from `crc` (0 to begin).
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace catchment::optimizer
