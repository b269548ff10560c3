#include "marked_vectors.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "element_types.hpp"
#include "numbers.hpp"
#include "rounding.hpp"
#include "scale.hpp"
#include "signature.hpp"

namespace catchment::host {
namespace {

using wire::DataType;

// From the top of a lane: how many ranks have +infinity or NaN, how many -infinity or NaN, the sum.
struct Fields {
  int counted;  // bits of a count
  int width;    // bits of the sum
  int power;    // the sum counts in units of 2^-power
};

Fields fields_of(int exponent, std::uint32_t ranks) {
  const int counted = std::bit_width(ranks);
  const int width = 32 - 2 * counted;
  const int most = exponent == kMostExponent ? kMostExponent + 1 : exponent;
  return {counted, width, width - 2 - headroom(ranks) - most};
}

template <typename Type>
std::uint32_t to_lanes(const std::uint8_t* source, std::size_t count, Fields fields,
                       std::uint8_t* lanes) {
  std::uint32_t nonfinite = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = widened<Type>(source + i * sizeof(typename Type::Word));
    std::uint32_t lane = 0;
    if (std::isfinite(x)) {
      lane = static_cast<std::uint32_t>(std::llrint(std::ldexp(x, fields.power)));
    } else {
      ++nonfinite;
      if (std::isnan(x) || x > 0) lane += 1U << (fields.width + fields.counted);
      if (std::isnan(x) || x < 0) lane += 1U << fields.width;
    }
    write_lane(lanes, i, lane);
  }
  return nonfinite;
}

template <typename Type>
void from_lanes(const std::uint8_t* lanes, std::size_t count, Fields fields, std::uint32_t divisor,
                std::uint8_t* target) {
  const int spare = 32 - fields.width;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t lane = read_lane(lanes, i);
    const std::int32_t sum = static_cast<std::int32_t>(lane << spare) >> spare;
    const std::uint32_t counts = (lane - static_cast<std::uint32_t>(sum)) >> fields.width;
    const bool plus = counts >> fields.counted != 0;
    const bool minus = (counts & ((1U << fields.counted) - 1)) != 0;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double value = std::ldexp(static_cast<double>(sum), -fields.power);
    if (plus || minus) value = plus ? kInfinity : -kInfinity;
    if (plus && minus) value = std::numeric_limits<double>::quiet_NaN();
    store<typename Type::Word>(target + i * sizeof(typename Type::Word),
                               rounded<Type>(value, divisor));
  }
}

}  // namespace

std::uint32_t quantize_marked(DataType type, const std::uint8_t* source, std::size_t count,
                              int exponent, std::uint32_t ranks, std::uint8_t* lanes) {
  const Fields fields = fields_of(exponent, ranks);
  std::uint32_t nonfinite = 0;
  with_float(type, [&](auto known) {
    nonfinite = to_lanes<decltype(known)>(source, count, fields, lanes);
  });
  return nonfinite;
}

void dequantize_marked(const std::uint8_t* lanes, std::size_t count, int exponent,
                       std::uint32_t ranks, std::uint32_t divisor, DataType type,
                       std::uint8_t* target) {
  const Fields fields = fields_of(exponent, ranks);
  with_float(type, [&](auto known) {
    from_lanes<decltype(known)>(lanes, count, fields, divisor, target);
  });
}

}  // namespace catchment::host
