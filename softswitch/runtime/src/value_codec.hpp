// Between big-endian byte strings and the words and cells of the packet thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "catchment/softswitch/status.hpp"

namespace catchment::softswitch {

using Words = std::vector<std::uint64_t>;

constexpr std::size_t words_of(std::uint32_t width) { return (width + 63) / 64; }

/// The number as ceil(width / 64) words, least significant first; `what` names it in the error.
Result<Words> to_words(const std::string& bytes, std::uint32_t width, const std::string& what);

/// The shortest big-endian byte string, at least one byte.
std::string to_bytes(std::span<const std::uint64_t> words);

/// Translate between byte strings or words and a little-endian cell in memory.
std::string cell_to_bytes(const std::uint8_t* cell, std::size_t size);
void words_to_cell(std::span<const std::uint64_t> words, std::uint8_t* cell, std::size_t size);

/// `ones` ones from the top of `width` bits.
Words prefix_mask(std::uint32_t ones, std::uint32_t width);

}  // namespace catchment::softswitch
