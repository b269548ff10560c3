// Compiled as numbers.cpp is: the loops are to become vector code.
#include "scale.hpp"

#include <algorithm>
#include <type_traits>

#include "element_types.hpp"

namespace catchment::host {
namespace {

using wire::DataType;

// Returns the largest magnitude as an integer, so that infinities and NaN are the largest.
template <typename Type, bool kFinite>
CATCHMENT_INLINE std::uint32_t largest_magnitude(const std::uint8_t* __restrict elements,
                                                 std::size_t count) {
  // Signed, since every instruction set has that comparison; the sign bit is gone.
  using Word = std::make_signed_t<typename Type::Word>;
  constexpr int kSign = 8 * sizeof(Word) - 1;
  Word most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto word = static_cast<Word>(load<Word>(elements + i * sizeof(Word)) & Word{Type::kMagnitude});
    if constexpr (kFinite) {
      const auto below =
          static_cast<Word>(static_cast<Word>(word - Word{Type::kInfinity}) >> kSign);
      word = static_cast<Word>(word & below);
    }
    most = word > most ? word : most;
  }
  return static_cast<std::uint32_t>(most);
}

template <typename Type>
CATCHMENT_INLINE Scale needed(const std::uint8_t* elements, std::size_t count) {
  std::uint32_t most = largest_magnitude<Type, false>(elements, count);
  const bool finite = most < Type::kInfinity;
  if (!finite) most = largest_magnitude<Type, true>(elements, count);
  if (most == 0) return {kLeastExponent, !finite};
  const int biased = static_cast<int>(most >> Type::kSignificandBits);
  const int exponent = biased - Type::kBias + 1;
  return {static_cast<std::int8_t>(std::min(exponent, kMostExponent)),
          !finite || exponent > kMostExponent};
}

}  // namespace

CATCHMENT_FOR_EACH_PROCESSOR
Scale scale_of(DataType type, const std::uint8_t* elements, std::size_t count) {
  switch (type) {
    case DataType::kFP32:
      return needed<Fp32>(elements, count);
    case DataType::kFP16:
      return needed<Fp16>(elements, count);
    case DataType::kBF16:
      return needed<Bf16>(elements, count);
    case DataType::kINT32:
    case DataType::kBYTES:
      break;
  }
  return {};
}

}  // namespace catchment::host
