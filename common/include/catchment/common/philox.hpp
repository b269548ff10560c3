// Philox4x64-10, the counter-based random generator of Salmon et al. (SC 2011): block n of a stream
// is a function of the key and n alone, so that any block can be drawn at any time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace catchment {

class Philox {
 public:
  using Block = std::array<std::uint64_t, 4>;

  constexpr Philox(std::uint64_t key, std::uint64_t stream) : key_{key, stream} {}

  [[nodiscard]] constexpr Block at(std::uint64_t number, std::uint64_t part) const {
    Block x{number, part, 0, 0};
    std::array<std::uint64_t, 2> key = key_;
    for (int round = 0; round < 10; ++round) {
      const unsigned __int128 a = static_cast<unsigned __int128>(0xD2E7470EE14C6C93U) * x[0];
      const unsigned __int128 b = static_cast<unsigned __int128>(0xCA5A826395121157U) * x[2];
      x = {static_cast<std::uint64_t>(b >> 64) ^ x[1] ^ key[0], static_cast<std::uint64_t>(b),
           static_cast<std::uint64_t>(a >> 64) ^ x[3] ^ key[1], static_cast<std::uint64_t>(a)};
      key[0] += 0x9E3779B97F4A7C15U;
      key[1] += 0xBB67AE8584CAA73BU;
    }
    return x;
  }

 private:
  std::array<std::uint64_t, 2> key_;
};

/// A draw as a fraction, 0 <= x < 1.
constexpr double fraction(std::uint64_t draw) { return static_cast<double>(draw >> 11U) * 0x1p-53; }

/// A draw as a whole number, 0 to `most`.
constexpr std::uint64_t scaled(std::uint64_t draw, std::uint64_t most) {
  const auto wide =
      static_cast<unsigned __int128>(draw) * (static_cast<unsigned __int128>(most) + 1);
  return static_cast<std::uint64_t>(wide >> 64);
}

}  // namespace catchment
