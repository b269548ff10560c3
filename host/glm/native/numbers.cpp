#include "numbers.hpp"

namespace catchment::glm {

std::int64_t sigmoid(std::span<const std::int32_t> table, std::int64_t activation) {
  const std::int64_t magnitude = activation < 0 ? -activation : activation;
  const auto index = static_cast<std::size_t>(magnitude >> kSigmoidFraction);
  std::int64_t value = kSigmoidOne;
  if (index < kSigmoidSegments) {
    const std::int64_t place = magnitude & ((1 << kSigmoidFraction) - 1);
    const std::int64_t rise = table[index + 1] - table[index];
    value = table[index] + ((rise * place + (1 << (kSigmoidFraction - 1))) >> kSigmoidFraction);
  }
  return activation < 0 ? kSigmoidOne - value : value;
}

std::int64_t derivative_of(Loss loss, std::span<const std::int32_t> table, std::int64_t activation,
                           std::int64_t label) {
  const bool positive = label > 0;
  std::int64_t derivative = 0;
  switch (loss) {
    case Loss::kSquares:
      derivative = activation - label;
      break;
    case Loss::kLogistic:
      derivative = sigmoid(table, activation) - (positive ? kSigmoidOne : 0);
      break;
    case Loss::kHinge:
      if ((positive ? activation : -activation) < kSigmoidOne)
        derivative = positive ? -kSigmoidOne : kSigmoidOne;
      break;
  }
  std::uint64_t uncounted = 0;
  return saturate(derivative, kDerivativeLimit, uncounted);
}

}  // namespace catchment::glm
