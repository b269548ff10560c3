#include "checksum.hpp"

#include <cstring>

#include "catchment/common/crc.hpp"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace catchment::optimizer {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f6'3b78U;  // Castagnoli's, bits reversed

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
  const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return ~catchment::crc<std::uint32_t, kPolynomial>(from, bytes.size(), ~crc);
}

}  // namespace catchment::optimizer
