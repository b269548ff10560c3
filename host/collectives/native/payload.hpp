// What an operation puts into its vectors and takes out of them.
#pragma once

#include <cstdint>

#include "numbers.hpp"
#include "operation.hpp"
#include "packed_lanes.hpp"
#include "scale.hpp"

namespace catchment::host {

// The fixed parts of a communicator that decide how an operation lies in vectors.
struct Layout {
  std::uint32_t lanes = 0;
  std::uint32_t ranks = 1;
  std::uint32_t rank = 0;
};

// What the vector of signatures has room for behind them, as if it were a vector by itself.
Layout riding(const Layout& layout);

// A sum or mean of floats that every rank makes of all ranks' words.
inline bool sums_words(const Signature& signature) {
  const bool reduces = signature.kind == Kind::kAllReduce || signature.kind == Kind::kReduce ||
                       signature.kind == Kind::kReduceScatter;
  return reduces && is_float(signature.type) && signature.scaling == ScalingMode::kNone &&
         signature.reduction != Reduction::kMax;
}

// The elements are words that pass as they are: everything but sums and means that lanes add.
inline bool passes_words(const Signature& signature) {
  return signature.kind == Kind::kBroadcast || signature.kind == Kind::kAllGather ||
         signature.reduction == Reduction::kMax || sums_words(signature);
}

// Whether vectors of such operations have packed lanes.
inline bool packs(const Signature& signature) {
  return signature.packed && !passes_words(signature);
}

// Elements that lie in a lane: two where lanes are packed, and one, or a part of one, of what
// passes as words.
inline std::uint32_t elements_in_lane(const Signature& signature) {
  return packs(signature) ? kHalvesInLane : 1;
}

// Lanes that an operation uses in all its vectors.
std::uint64_t lanes_of(const Signature& signature, const Layout& layout);

// Writes vector `index` into a payload. A marked one of packed lanes has zeros: all of it is
// spoilt.
Cut fill(const Operation& operation, std::uint32_t index, Scale scale, const Layout& layout,
         std::uint8_t* payload);

// What all of this rank's values need.
Scale scale_of(const Call& call);

// How many of this rank's floats are NaN or infinite.
std::uint32_t count_nonfinite(const Call& call);

// What this rank's values of vector `index` need.
Scale scale_of(const Operation& operation, std::uint32_t index, const Layout& layout);

// Takes the sum of vector `index` out of a payload.
void place(Operation& operation, std::uint32_t index, Scale scale, const Layout& layout,
           const std::uint8_t* payload);

// Makes all of vector `index` NaN in the result.
void spoil(Operation& operation, std::uint32_t index, const Layout& layout);

// Completes the result of an operation; called when all its vectors are in place.
void finish(Operation& operation, const Layout& layout);

}  // namespace catchment::host
