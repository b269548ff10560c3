// Compiled as numbers.cpp is: the loops are to become vector code.
#include "elementwise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "element_types.hpp"
#include "numbers.hpp"

namespace catchment::host {
namespace {

using wire::DataType;

template <typename Type>
CATCHMENT_INLINE void divide(const float* __restrict sums, std::size_t count, float divisor,
                             std::uint8_t* __restrict target) {
  using Word = typename Type::Word;
  for (std::size_t i = 0; i < count; ++i) {
    store<Word>(target + i * sizeof(Word), Type::narrow(sums[i] / divisor));
  }
}

template <typename Type>
CATCHMENT_INLINE void maximum_of(const std::uint8_t* __restrict other, std::size_t count,
                                 std::uint8_t* __restrict target) {
  using Word = typename Type::Word;
  for (std::size_t i = 0; i < count; ++i) {
    const Word a = load<Word>(target + i * sizeof(Word));
    const Word b = load<Word>(other + i * sizeof(Word));
    const float x = std::bit_cast<float>(Type::widen(a));
    const float y = std::bit_cast<float>(Type::widen(b));
    const bool keep = !(y == y) ? !(x == x) : !(y > x);
    const Word larger = keep ? a : b;
    // Equal words stay as they are; zeros of both signs become +0.
    store<Word>(target + i * sizeof(Word), x == y ? static_cast<Word>(a & b) : larger);
  }
}

}  // namespace

CATCHMENT_FOR_EACH_PROCESSOR
void mean(const LaneFormat& format, const std::uint8_t* sums, std::size_t count, int exponent,
          std::uint32_t ranks, DataType type, std::uint8_t* target) {
  constexpr std::size_t kPiece = 256;
  std::array<float, kPiece> floats{};
  const auto divisor = static_cast<float>(ranks);
  for (std::size_t done = 0; done < count; done += kPiece) {
    const std::size_t part = std::min(kPiece, count - done);
    format.dequantize(sums + done * format.item_bytes(), part, exponent, DataType::kFP32,
                      reinterpret_cast<std::uint8_t*>(floats.data()));
    std::uint8_t* const to = target + done * item_bytes(type);
    if (type == DataType::kFP32) divide<Fp32>(floats.data(), part, divisor, to);
    if (type == DataType::kFP16) divide<Fp16>(floats.data(), part, divisor, to);
    if (type == DataType::kBF16) divide<Bf16>(floats.data(), part, divisor, to);
  }
}

CATCHMENT_FOR_EACH_PROCESSOR
void maximum(DataType type, const std::uint8_t* other, std::size_t count, std::uint8_t* target) {
  switch (type) {
    case DataType::kFP32:
      return maximum_of<Fp32>(other, count, target);
    case DataType::kFP16:
      return maximum_of<Fp16>(other, count, target);
    case DataType::kBF16:
      return maximum_of<Bf16>(other, count, target);
    case DataType::kINT32:
    case DataType::kBYTES:
      break;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = load<std::int32_t>(target + i * 4);
    const auto b = load<std::int32_t>(other + i * 4);
    store(target + i * 4, a < b ? b : a);
  }
}

}  // namespace catchment::host
