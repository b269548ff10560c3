#include "checksum.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace catchment::optimizer {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f6'3b78U;  // Castagnoli's, bits reversed

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    }
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

std::uint32_t by_table(const std::byte* from, std::size_t length, std::uint32_t state) {
  for (std::size_t i = 0; i < length; ++i) {
    state = (state >> 8) ^ kTable[(state ^ static_cast<std::uint32_t>(from[i])) & 0xffU];
  }
  return state;
}

#if defined(__x86_64__)
std::uint64_t load(const std::byte* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const std::byte* from,
                                                               std::size_t length,
                                                               std::uint32_t state) {
  std::uint64_t wide = state;
  for (; length >= sizeof wide; from += sizeof wide, length -= sizeof wide) {
    wide = _mm_crc32_u64(wide, load(from));
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; length > 0; ++from, --length) {
    narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(*from));
  }
  return narrow;
}

bool has_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  if (has_instruction()) return ~by_instruction(bytes.data(), bytes.size(), ~crc);
#endif
  return ~by_table(bytes.data(), bytes.size(), ~crc);
}

}  // namespace catchment::optimizer
