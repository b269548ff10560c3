// The ones' complement sum of IPv4, TCP and UDP (RFC 1071).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace catchment {

/// Takes one word from the front of the data, as it lies in memory.
template <class Word>
Word take_word(const std::uint8_t*& data, std::size_t& bytes) {
  Word word;
  std::memcpy(&word, data, sizeof word);
  data += sizeof word;
  bytes -= sizeof word;
  return word;
}

/// Sum of 16-bit words as they lie in memory; an odd last byte is padded with zero. The sum is of
/// no byte order: stored as it is, it is right on the wire. Sums of pieces with an even number of
/// bytes add up.
inline std::uint64_t ones_sum(const std::uint8_t* data, std::size_t bytes, std::uint64_t sum = 0) {
  // Two chains: an add with carry waits for the one before it.
  unsigned __int128 even = sum;
  unsigned __int128 odd = 0;
  std::uint64_t words[2];
  for (; bytes >= sizeof words; data += sizeof words, bytes -= sizeof words) {
    std::memcpy(words, data, sizeof words);
    even += words[0];
    odd += words[1];
  }
  // The rest in loads of fixed sizes: of a header, whose length the compiler knows, no branch
  // stays.
  if (bytes >= 8) {
    even += take_word<std::uint64_t>(data, bytes);
  }
  if (bytes >= 4) {
    odd += take_word<std::uint32_t>(data, bytes);
  }
  if (bytes >= 2) {
    even += take_word<std::uint16_t>(data, bytes);
  }
  if (bytes == 1) {
    std::uint16_t last = 0;
    std::memcpy(&last, data, 1);
    odd += last;
  }
  even += odd;
  auto folded = static_cast<std::uint64_t>(even);
  const auto carries = static_cast<std::uint64_t>(even >> 64);
  folded = (folded >> 32) + (folded & 0xFFFFFFFFU) + carries;
  return folded;
}

inline std::uint16_t fold(std::uint64_t sum) {
  while (sum >> 16 != 0) {
    sum = (sum >> 16) + (sum & 0xFFFFU);
  }
  return static_cast<std::uint16_t>(sum);
}

}  // namespace catchment
