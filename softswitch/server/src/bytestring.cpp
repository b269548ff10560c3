#include "bytestring.hpp"

#include "rpc_error.hpp"

namespace catchment::server {

namespace {

std::string_view without_leading(std::string_view value, char filler) {
  const auto first = value.find_first_not_of(filler);
  return first == std::string_view::npos ? value.substr(value.size()) : value.substr(first);
}

// Mask of the bits that the most significant byte of a `width`-bit value may use.
std::uint8_t top_byte_mask(unsigned width) {
  const unsigned used = width % 8;
  return used == 0 ? 0xff : static_cast<std::uint8_t>((1U << used) - 1);
}

[[noreturn]] void refuse(std::string_view value, std::string_view type, unsigned width,
                         const Where& where) {
  if (value.empty()) {
    throw out_of_range(where.text() +
                       ": the byte string is empty; a value needs at least one byte");
  }
  throw out_of_range(where.text() + ": " + to_hex(value) + " does not fit in " + std::string(type) +
                     "<" + std::to_string(width) + ">");
}

}  // namespace

void require_bits(std::int32_t bitwidth, const Where& where) {
  if (bitwidth == 0) {
    throw unimplemented(where.text() +
                        ": values of its type are strings (@p4runtime_translation), which this "
                        "switch does not translate");
  }
}

std::string to_fixed(std::string_view value, unsigned width, const Where& where) {
  if (value.empty()) {
    refuse(value, "bit", width, where);
  }
  const unsigned bytes = byte_width(width);
  if (value.size() > bytes) {
    const auto significant = without_leading(value, '\0');
    if (significant.size() > bytes) {
      refuse(value, "bit", width, where);
    }
    value = value.substr(value.size() - bytes);
  }
  if (value.size() == bytes && bytes > 0 &&
      (static_cast<std::uint8_t>(value.front()) & ~top_byte_mask(width)) != 0) {
    refuse(value, "bit", width, where);
  }
  std::string result(bytes - value.size(), '\0');
  result.append(value);
  return result;
}

std::string to_fixed_signed(std::string_view value, unsigned width, const Where& where) {
  if (value.empty()) {
    refuse(value, "int", width, where);
  }
  const unsigned bytes = byte_width(width);
  const bool negative = (static_cast<std::uint8_t>(value.front()) & 0x80) != 0;
  const char filler = negative ? '\xff' : '\0';
  std::string result;
  if (value.size() > bytes) {
    const auto dropped = value.substr(0, value.size() - bytes);
    if (!without_leading(dropped, filler).empty()) {
      refuse(value, "int", width, where);
    }
    result = value.substr(value.size() - bytes);
  } else {
    result.assign(bytes - value.size(), filler);
    result.append(value);
  }
  // Every bit from the sign bit (width - 1) upwards must repeat the sign.
  const auto mask = static_cast<std::uint8_t>(~(top_byte_mask(width) >> 1));
  const auto top = static_cast<std::uint8_t>(static_cast<std::uint8_t>(result.front()) & mask);
  if (top != (negative ? mask : 0)) {
    refuse(value, "int", width, where);
  }
  return result;
}

std::string to_canonical(std::string_view fixed) {
  const auto significant = without_leading(fixed, '\0');
  return significant.empty() ? std::string(1, '\0') : std::string(significant);
}

std::string to_canonical_signed(std::string_view fixed, unsigned width) {
  std::string value(fixed);
  const std::uint8_t mask = top_byte_mask(width);
  const auto top = static_cast<std::uint8_t>(value.front());
  const bool negative = (top & ((mask >> 1) ^ mask)) != 0;
  value.front() = static_cast<char>(negative ? top | static_cast<std::uint8_t>(~mask) : top & mask);
  const std::uint8_t filler = negative ? 0xff : 0;
  std::size_t skip = 0;
  while (skip + 1 < value.size() && static_cast<std::uint8_t>(value[skip]) == filler &&
         ((static_cast<std::uint8_t>(value[skip + 1]) & 0x80) != 0) == negative) {
    ++skip;
  }
  return value.substr(skip);
}

std::uint64_t to_uint64(std::string_view value, unsigned width, const Where& where) {
  std::uint64_t result = 0;
  for (const char byte : to_fixed(value, width, where)) {
    result = result << 8 | static_cast<std::uint8_t>(byte);
  }
  return result;
}

std::string prefix_mask(unsigned width, unsigned ones) {
  const unsigned bytes = byte_width(width);
  std::string mask(bytes, '\0');
  for (unsigned bit = width - ones; bit < width; ++bit) {
    char& byte = mask[bytes - 1 - bit / 8];
    byte = static_cast<char>(static_cast<std::uint8_t>(byte) | 1U << bit % 8);
  }
  return mask;
}

std::string all_ones(unsigned width) { return prefix_mask(width, width); }

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr std::size_t shown = 32;
  std::string text = "0x";
  for (const char byte : bytes.substr(0, shown)) {
    text += digits[static_cast<std::uint8_t>(byte) >> 4];
    text += digits[static_cast<std::uint8_t>(byte) & 15];
  }
  return bytes.size() > shown ? text + "..." : text;
}

}  // namespace catchment::server
