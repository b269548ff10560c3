// Floats as doubles, which hold each exactly, and back, rounded once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "element_types.hpp"
#include "wire.hpp"

namespace catchment::host {

template <typename Type>
double widened(const std::uint8_t* element) {
  return std::bit_cast<float>(Type::widen(load<typename Type::Word>(element)));
}

// Half to even; NaN becomes the quiet one without a sign.
template <typename Type>
typename Type::Word rounded(double value) {
  if (std::isnan(value)) {
    return static_cast<typename Type::Word>(Type::kInfinity | Type::kInfinity >> 1);
  }
  const auto nearest = static_cast<float>(value);
  if constexpr (sizeof(typename Type::Word) == sizeof(float)) {
    return Type::narrow(nearest);
  } else {
    // This first rounding is to odd, so that the second gives what a single rounding would give.
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    if (static_cast<double>(nearest) != value) {
      if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
      bits |= 1U;
    }
    return Type::narrow(std::bit_cast<float>(bits));
  }
}

// A sum, or with a divisor the mean that is made of the sum as fp32.
template <typename Type>
typename Type::Word rounded(double sum, std::uint32_t divisor) {
  if (divisor == 1) return rounded<Type>(sum);
  return rounded<Type>(static_cast<float>(sum) / static_cast<float>(divisor));
}

// Calls `body` with the float type that `type` names.
template <typename Body>
void with_float(wire::DataType type, const Body& body) {
  if (type == wire::DataType::kFP32) body(Fp32{});
  if (type == wire::DataType::kFP16) body(Fp16{});
  if (type == wire::DataType::kBF16) body(Bf16{});
}

}  // namespace catchment::host
