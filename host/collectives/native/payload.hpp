// What an operation puts into its vectors and takes out of them.
#pragma once

#include <cstdint>

#include "numbers.hpp"
#include "operation.hpp"

namespace catchment::host {

// The fixed parts of a communicator that decide how an operation lies in vectors.
struct Layout {
  std::uint32_t lanes = 0;
  std::uint32_t ranks = 1;
  std::uint32_t rank = 0;
  int headroom = 0;
};

// What the vector of signatures has room for behind them, as if it were a vector by itself.
Layout riding(const Layout& layout);

// The elements are words that pass as they are: everything but sums and means.
bool passes_words(const Signature& signature);

// Lanes that an operation uses in all its vectors.
std::uint64_t lanes_of(const Signature& signature, const Layout& layout);

// Writes vector `index` into a payload.
Cut fill(const Operation& operation, std::uint32_t index, int exponent, const Layout& layout,
         std::uint8_t* payload);

// The smallest E that holds this rank's values of vectors [first, last).
int exponent_of(const Operation& operation, std::uint32_t first, std::uint32_t last,
                const Layout& layout);

// Takes the sum of vector `index` out of a payload.
void place(Operation& operation, std::uint32_t index, int exponent, const Layout& layout,
           const std::uint8_t* payload);

// When all vectors are in place.
void finish(Operation& operation, const Layout& layout);

}  // namespace catchment::host
