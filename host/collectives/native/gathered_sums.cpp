#include "gathered_sums.hpp"

#include <cmath>
#include <limits>

#include "rounding.hpp"

namespace catchment::host {

void add_gathered(wire::DataType type, const std::uint8_t* arrays, std::size_t stride,
                  std::uint32_t ranks, std::size_t count, std::uint32_t divisor,
                  std::uint8_t* target) {
  with_float(type, [&](auto known) {
    using Type = decltype(known);
    constexpr std::size_t kBytes = sizeof(typename Type::Word);
    for (std::size_t i = 0; i < count; ++i) {
      double sum = widened<Type>(arrays + i * kBytes);
      for (std::uint32_t rank = 1; rank < ranks; ++rank) {
        sum += widened<Type>(arrays + rank * stride + i * kBytes);
      }
      store(target + i * kBytes, rounded<Type>(sum, divisor));
    }
  });
}

std::uint32_t count_nonfinite(wire::DataType type, const std::uint8_t* elements,
                              std::size_t count) {
  std::uint32_t found = 0;
  with_float(type, [&](auto known) {
    using Type = decltype(known);
    for (std::size_t i = 0; i < count; ++i) {
      found += std::isfinite(widened<Type>(elements + i * sizeof(typename Type::Word))) ? 0U : 1U;
    }
  });
  return found;
}

void fill_nan(wire::DataType type, std::size_t count, std::uint8_t* target) {
  with_float(type, [&](auto known) {
    using Type = decltype(known);
    const auto nan = rounded<Type>(std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 0; i < count; ++i) store(target + i * sizeof nan, nan);
  });
}

}  // namespace catchment::host
