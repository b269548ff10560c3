// Sums to fp16 by the processor's own conversion, where it has one; the compiler does not find it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace catchment::host {

// Converts the first lanes, as many as fit its vectors, exactly as dequantize() does for fp16 with
// a scale of 2^power, -126 <= power.  Returns how many; 0 where the processor cannot.  `most`: the
// largest magnitude so far.
std::size_t lanes_to_fp16(const std::uint8_t* lanes, std::size_t count, int power,
                          std::uint8_t* target, std::uint32_t& most);

}  // namespace catchment::host
