// A signature says what a rank is about to do, in words that all ranks compare in an operation's
// first vector.  Every rank writes into lanes of its own and zeros elsewhere, so the sum is
// everyone's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire.hpp"

namespace catchment::host {

enum class Kind : std::uint8_t {
  kAllReduce = 1,
  kReduce = 2,
  kBroadcast = 3,
  kBarrier = 4,
  kReduceScatter = 5,
  kAllGather = 6,
  kBeside = 7,   // goes another way than through the switch, once all ranks want it
  kRefused = 8,  // this rank was asked for something that cannot be
};

enum class Reduction : std::uint8_t { kSum = 0, kMean = 1, kMax = 2 };

enum class ScalingMode : std::uint8_t {
  kNone = 0,
  kBlock = 1,
  kFixed = 2,
  kDelayed = 3,
  kWhole = 4,
};

// Each vector's E is what all ranks' values need (kWhole: what their whole arrays need, so that all
// vectors have one); `exponent` of a signature is a guess of it.
constexpr bool negotiates(ScalingMode scaling) {
  return scaling == ScalingMode::kBlock || scaling == ScalingMode::kDelayed ||
         scaling == ScalingMode::kWhole;
}
// Whether ranks may give different exponents in their signatures.
constexpr bool guesses(ScalingMode scaling) {
  return scaling == ScalingMode::kBlock || scaling == ScalingMode::kWhole;
}

struct Signature {
  Kind kind = Kind::kBarrier;
  Reduction reduction = Reduction::kSum;
  wire::DataType type = wire::DataType::kBYTES;
  ScalingMode scaling = ScalingMode::kNone;
  // Of all_gather and reduce_scatter: of a hash of the places of strided parts, else 0.
  std::uint8_t root = 0;
  std::int8_t exponent = 0;
  bool cancelled = false;
  bool packed = false;         // two 16-bit integers in a lane, of what is scaled
  std::uint64_t elements = 0;  // of each rank's array, kMostElements at most
  std::uint32_t tag = 0;

  static constexpr std::uint64_t kMostElements = (1ULL << 36) - 1;

  friend bool operator==(const Signature&, const Signature&) = default;
};

// Names an operation in an error, as in "all_reduce(1000 x fp32, sum)".
std::string describe(const Signature& signature);

// Lanes that a rank has in a vector of signatures: the tag is compared where there are three.
constexpr std::size_t signature_lanes(std::size_t lanes, std::size_t ranks) {
  return lanes / ranks < 3 ? lanes / ranks : 3;
}
inline constexpr std::size_t kLeastSignatureLanes = 2;
// What all of them take at the beginning of the vector; data may lie behind.
constexpr std::size_t all_signature_lanes(std::size_t lanes, std::size_t ranks) {
  return signature_lanes(lanes, ranks) * ranks;
}

// Writes `rank`'s words into a payload of `lanes` zeroed lanes.
void write_signature(const Signature& signature, std::size_t rank, std::size_t ranks,
                     std::size_t lanes, std::uint8_t* payload);
// What `rank` wrote, nothing if that is no signature.
std::optional<Signature> read_signature(const std::uint8_t* payload, std::size_t rank,
                                        std::size_t ranks, std::size_t lanes);

// The lane of a payload, as it travels.
std::uint32_t read_lane(const std::uint8_t* payload, std::size_t lane);
void write_lane(std::uint8_t* payload, std::size_t lane, std::uint32_t value);

}  // namespace catchment::host
