// How the floats of a stream lie in its lanes: one in each, or two in packed ones.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numbers.hpp"
#include "packed_lanes.hpp"
#include "wire.hpp"

namespace catchment::host {

class LaneFormat {
 public:
  LaneFormat(bool packed, std::uint32_t workers) : packed_(packed), range_(workers) {}

  // Bytes of an element in a payload.
  std::size_t item_bytes() const { return packed_ ? kHalfBytes : wire::kLaneBytes; }

  Cut quantize(wire::DataType type, const std::uint8_t* source, std::size_t count, int exponent,
               std::uint8_t* payload) const {
    return packed_ ? quantize_packed(type, source, count, exponent, range_, payload)
                   : host::quantize(type, source, count, exponent, range_.headroom(), payload);
  }

  // Returns the largest magnitude of a sum.
  std::uint32_t dequantize(const std::uint8_t* payload, std::size_t count, int exponent,
                           wire::DataType type, std::uint8_t* target) const {
    return packed_ ? dequantize_packed(payload, count, exponent, range_, type, target)
                   : host::dequantize(payload, count, exponent, range_.headroom(), type, target);
  }

  // What a sum of floats with this magnitude stands for.
  double value(std::uint32_t magnitude, int exponent) const {
    return std::ldexp(magnitude, exponent + range_.headroom() - (packed_ ? kHalfBits : kLaneBits));
  }

 private:
  static constexpr int kLaneBits = 30;  // of a lane beside its sign and a bit to spare

  bool packed_;
  HalfRange range_;
};

}  // namespace catchment::host
