// Features as codes: every feature's range mapped to the integers of a precision.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace catchment::glm {

// Rows of a sparse matrix.  Columns are not trusted; offsets are, after `check`.
struct SparseRows {
  std::span<const std::int64_t> offsets;
  std::span<const std::int32_t> columns;
  std::size_t features = 0;

  std::size_t samples() const { return offsets.size() - 1; }
  // Throws std::invalid_argument when the offsets do not cover the columns, or a column is beyond
  // the features.
  void check() const;
};

struct Ranges {
  std::vector<double> low;
  std::vector<double> high;
};

// The least and the largest value of every feature; what is not stored is 0.
Ranges feature_ranges(const SparseRows& rows, std::span<const double> values);

// A linear map of [low, low + span] to 0 .. largest; beyond it values are cut, a span of 0 gives 0.
struct Scale {
  std::span<const double> low;
  std::span<const double> span;
  std::uint16_t largest = 1;

  // Returns the code of a feature's value, rounded half to even.
  std::uint16_t code(double value, std::size_t feature) const;
};

// The code of each stored value.
std::vector<std::uint16_t> value_codes(const SparseRows& rows, std::span<const double> values,
                                       const Scale& scale);

// How rows are laid out: `order` names the sample of each; a feature that is not stored has
// `of_zero`; a last feature has the code `bias`, none if 0.
struct Layout {
  std::span<const std::int64_t> order;
  std::span<const std::uint16_t> of_zero;
  std::uint16_t bias = 0;
};

// Rows that hold only codes that are not 0, by rising feature: their offsets, and then their
// columns and codes, for which there are offsets.back() places.  Throws std::invalid_argument when
// a row's features do not rise.
std::vector<std::int64_t> sparse_offsets(const SparseRows& rows,
                                         std::span<const std::uint16_t> codes,
                                         const Layout& layout);
void sparse_codes(const SparseRows& rows, std::span<const std::uint16_t> codes,
                  const Layout& layout, std::span<std::int32_t> columns,
                  std::span<std::uint16_t> to);

// Rows of all features, into `to`, which has layout.order.size() * (features + has bias) places.
template <typename Code>
void dense_codes(const SparseRows& rows, std::span<const std::uint16_t> codes, const Layout& layout,
                 std::span<Code> to);

extern template void dense_codes<std::uint8_t>(const SparseRows&, std::span<const std::uint16_t>,
                                               const Layout&, std::span<std::uint8_t>);
extern template void dense_codes<std::uint16_t>(const SparseRows&, std::span<const std::uint16_t>,
                                                const Layout&, std::span<std::uint16_t>);

}  // namespace catchment::glm
