#include "samples.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "numbers.hpp"

namespace catchment::glm {
namespace {

std::uint64_t take(std::int32_t& weight, std::int64_t& gradient, int shift) {
  std::uint64_t cuts = 0;
  const std::int64_t next = weight - round_half_even(gradient, shift);
  weight = static_cast<std::int32_t>(saturate(next, kWeightLimit, cuts));
  gradient = 0;
  return cuts;
}

// The sum of eight samples' products fits 32 bits when codes have at most 8 bits.
template <typename Code>
using Product = std::conditional_t<sizeof(Code) == 1, std::int32_t, std::int64_t>;

template <typename Code>
void accumulate_bank_of_samples(const Code* rows, std::size_t features,
                                std::span<const std::int64_t> scales, std::int64_t* gradient) {
  using P = Product<Code>;
  if (scales.size() == kBanks) {
    std::array<P, kBanks> s;
    std::transform(scales.begin(), scales.end(), s.begin(),
                   [](std::int64_t scale) { return static_cast<P>(scale); });
    for (std::size_t j = 0; j < features; ++j) {
      P sum = 0;
      for (std::size_t k = 0; k < kBanks; ++k) sum += s[k] * static_cast<P>(rows[k * features + j]);
      gradient[j] += sum;
    }
    return;
  }
  for (std::size_t k = 0; k < scales.size(); ++k) {
    const auto scale = static_cast<P>(scales[k]);
    for (std::size_t j = 0; j < features; ++j) {
      gradient[j] += scale * static_cast<P>(rows[k * features + j]);
    }
  }
}

}  // namespace

SparseSamples::SparseSamples(std::vector<std::int64_t> offsets, std::vector<std::int32_t> columns,
                             std::vector<std::uint16_t> codes, std::size_t features)
    : offsets_(std::move(offsets)),
      columns_(std::move(columns)),
      codes_(std::move(codes)),
      features_(features) {
  if (offsets_.empty() || offsets_.front() != 0 ||
      !std::is_sorted(offsets_.begin(), offsets_.end()) ||
      static_cast<std::size_t>(offsets_.back()) != columns_.size() ||
      columns_.size() != codes_.size()) {
    throw std::invalid_argument("the rows' offsets do not fit the columns and codes");
  }
  for (const std::int32_t column : columns_) {
    if (column < 0 || static_cast<std::size_t>(column) >= features_) {
      throw std::invalid_argument("a column is beyond the features");
    }
  }
}

std::int64_t SparseSamples::dot(std::size_t sample, const std::int32_t* weights) const {
  const auto begin = static_cast<std::size_t>(offsets_[sample]);
  const auto end = static_cast<std::size_t>(offsets_[sample + 1]);
  std::int64_t sum = 0;
  for (std::size_t i = begin; i < end; ++i) {
    sum += std::int64_t{weights[columns_[i]]} * codes_[i];
  }
  return sum;
}

void SparseSamples::accumulate(std::size_t first, std::span<const std::int64_t> scales,
                               std::int64_t* gradient) const {
  for (std::size_t k = 0; k < scales.size(); ++k) {
    const std::int64_t scale = scales[k];
    if (scale == 0) continue;
    const auto end = static_cast<std::size_t>(offsets_[first + k + 1]);
    for (auto i = static_cast<std::size_t>(offsets_[first + k]); i < end; ++i) {
      gradient[columns_[i]] += scale * codes_[i];
    }
  }
}

std::uint64_t SparseSamples::update(std::size_t first, std::size_t last, int shift,
                                    std::int32_t* weights, std::int64_t* gradient) const {
  std::uint64_t cuts = 0;
  const auto end = static_cast<std::size_t>(offsets_[last]);
  for (auto i = static_cast<std::size_t>(offsets_[first]); i < end; ++i) {
    // A feature of several samples has no gradient left the second time.
    cuts += take(weights[columns_[i]], gradient[columns_[i]], shift);
  }
  return cuts;
}

template <typename Code>
DenseSamples<Code>::DenseSamples(std::vector<Code> codes, std::size_t features)
    : codes_(std::move(codes)), features_(features) {
  if (features_ == 0 || codes_.size() % features_ != 0) {
    throw std::invalid_argument("the codes are not whole rows");
  }
}

template <typename Code>
std::int64_t DenseSamples<Code>::dot(std::size_t sample, const std::int32_t* weights) const {
  const Code* const row = codes_.data() + sample * features_;
  std::int64_t sum = 0;
  for (std::size_t j = 0; j < features_; ++j) sum += std::int64_t{weights[j]} * row[j];
  return sum;
}

template <typename Code>
void DenseSamples<Code>::accumulate(std::size_t first, std::span<const std::int64_t> scales,
                                    std::int64_t* gradient) const {
  for (std::size_t k = 0; k < scales.size(); k += kBanks) {
    accumulate_bank_of_samples(codes_.data() + (first + k) * features_, features_,
                               scales.subspan(k, std::min<std::size_t>(kBanks, scales.size() - k)),
                               gradient);
  }
}

template <typename Code>
std::uint64_t DenseSamples<Code>::update(std::size_t, std::size_t, int shift, std::int32_t* weights,
                                         std::int64_t* gradient) const {
  std::uint64_t cuts = 0;
  for (std::size_t j = 0; j < features_; ++j) cuts += take(weights[j], gradient[j], shift);
  return cuts;
}

template class DenseSamples<std::uint8_t>;
template class DenseSamples<std::uint16_t>;

}  // namespace catchment::glm
