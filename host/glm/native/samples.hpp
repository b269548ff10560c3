// A worker's samples: leading bits of the features as integers, by rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace catchment::glm {

// Rows that hold only what is not 0.
class SparseSamples {
 public:
  // CSR; throws std::invalid_argument when offsets or columns are out of range.
  SparseSamples(std::vector<std::int64_t> offsets, std::vector<std::int32_t> columns,
                std::vector<std::uint16_t> codes, std::size_t features);

  std::size_t samples() const { return offsets_.size() - 1; }
  std::size_t features() const { return features_; }

  std::int64_t dot(std::size_t sample, const std::int32_t* weights) const;
  // gradient += sum over the samples from `first` on of scale * sample.
  void accumulate(std::size_t first, std::span<const std::int64_t> scales,
                  std::int64_t* gradient) const;
  // Takes the gradient of these samples from the weights and clears it; returns how many were cut.
  std::uint64_t update(std::size_t first, std::size_t last, int shift, std::int32_t* weights,
                       std::int64_t* gradient) const;

 private:
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> columns_;
  std::vector<std::uint16_t> codes_;
  std::size_t features_;
};

// Rows that hold every feature, as 8 or 16 bits; members as above.
template <typename Code>
class DenseSamples {
 public:
  DenseSamples(std::vector<Code> codes, std::size_t features);

  std::size_t samples() const { return codes_.size() / features_; }
  std::size_t features() const { return features_; }

  std::int64_t dot(std::size_t sample, const std::int32_t* weights) const;
  void accumulate(std::size_t first, std::span<const std::int64_t> scales,
                  std::int64_t* gradient) const;
  std::uint64_t update(std::size_t first, std::size_t last, int shift, std::int32_t* weights,
                       std::int64_t* gradient) const;

 private:
  std::vector<Code> codes_;
  std::size_t features_;
};

extern template class DenseSamples<std::uint8_t>;
extern template class DenseSamples<std::uint16_t>;

}  // namespace catchment::glm
