#include "value_codec.hpp"

#include <cstring>

namespace catchment::softswitch {

Result<Words> to_words(const std::string& bytes, std::uint32_t width, const std::string& what) {
  if (bytes.empty()) {
    return Status(StatusCode::invalid_argument, what + ": the byte string is empty");
  }
  Words words(words_of(width), 0);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[bytes.size() - 1 - i]);
    if (byte == 0) {
      continue;
    }
    const std::size_t top_bit = 8 * i + (31 - static_cast<std::size_t>(__builtin_clz(byte)));
    if (top_bit >= width) {
      return Status(StatusCode::out_of_range,
                    what + ": the value does not fit in " + std::to_string(width) + " bits");
    }
    words[i / 8] |= static_cast<std::uint64_t>(byte) << (8 * (i % 8));
  }
  return words;
}

std::string to_bytes(std::span<const std::uint64_t> words) {
  std::string bytes;
  for (std::size_t i = words.size() * 8; i-- > 0;) {
    const auto byte = static_cast<char>(words[i / 8] >> (8 * (i % 8)));
    if (byte != 0 || !bytes.empty() || i == 0) {
      bytes.push_back(byte);
    }
  }
  return bytes.empty() ? std::string(1, '\0') : bytes;
}

std::string cell_to_bytes(const std::uint8_t* cell, std::size_t size) {
  std::string bytes;
  for (std::size_t i = size; i-- > 0;) {
    if (cell[i] != 0 || !bytes.empty() || i == 0) {
      bytes.push_back(static_cast<char>(cell[i]));
    }
  }
  return bytes;
}

void words_to_cell(std::span<const std::uint64_t> words, std::uint8_t* cell, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    cell[i] = i / 8 < words.size() ? static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8))) : 0;
  }
}

Words prefix_mask(std::uint32_t ones, std::uint32_t width) {
  Words words(words_of(width), 0);
  for (std::uint32_t i = width - ones; i < width; ++i) {
    words[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  return words;
}

}  // namespace catchment::softswitch
