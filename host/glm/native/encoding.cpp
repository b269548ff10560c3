#include "encoding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace catchment::glm {
namespace {

struct Range {
  std::size_t begin;
  std::size_t end;
};

Range row_of(const SparseRows& rows, std::int64_t sample) {
  if (sample < 0 || static_cast<std::size_t>(sample) >= rows.samples()) {
    throw std::out_of_range("the order names a sample that is not there");
  }
  const auto at = static_cast<std::size_t>(sample);
  return {static_cast<std::size_t>(rows.offsets[at]),
          static_cast<std::size_t>(rows.offsets[at + 1])};
}

void check_layout(const SparseRows& rows, std::span<const std::uint16_t> codes,
                  const Layout& layout) {
  rows.check();
  if (codes.size() != rows.columns.size() || layout.of_zero.size() != rows.features) {
    throw std::invalid_argument("one code a stored value and one a feature are needed");
  }
}

// The features whose zeros have a code: they are held by every row.
std::vector<std::int32_t> whole_columns(std::span<const std::uint16_t> of_zero) {
  std::vector<std::int32_t> whole;
  for (std::size_t j = 0; j < of_zero.size(); ++j) {
    if (of_zero[j] != 0) whole.push_back(static_cast<std::int32_t>(j));
  }
  return whole;
}

}  // namespace

void SparseRows::check() const {
  if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
      static_cast<std::size_t>(offsets.back()) != columns.size()) {
    throw std::invalid_argument("the rows' offsets do not fit the columns");
  }
  const bool inside = std::all_of(columns.begin(), columns.end(), [this](std::int32_t column) {
    return column >= 0 && static_cast<std::size_t>(column) < features;
  });
  if (!inside) throw std::invalid_argument("a column is beyond the features");
}

Ranges feature_ranges(const SparseRows& rows, std::span<const double> values) {
  rows.check();
  if (values.size() != rows.columns.size()) {
    throw std::invalid_argument("one value a column is needed");
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Ranges ranges{std::vector<double>(rows.features, kInfinity),
                std::vector<double>(rows.features, -kInfinity)};
  std::vector<std::size_t> stored(rows.features);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto j = static_cast<std::size_t>(rows.columns[i]);
    ranges.low[j] = std::min(ranges.low[j], values[i]);
    ranges.high[j] = std::max(ranges.high[j], values[i]);
    ++stored[j];
  }
  for (std::size_t j = 0; j < rows.features; ++j) {
    if (stored[j] == rows.samples()) continue;
    ranges.low[j] = std::min(ranges.low[j], 0.0);
    ranges.high[j] = std::max(ranges.high[j], 0.0);
  }
  return ranges;
}

std::uint16_t Scale::code(double value, std::size_t feature) const {
  if (!(span[feature] > 0)) return 0;
  const double share = (value - low[feature]) / span[feature];
  return static_cast<std::uint16_t>(std::nearbyint(std::clamp(share, 0.0, 1.0) * largest));
}

std::vector<std::uint16_t> value_codes(const SparseRows& rows, std::span<const double> values,
                                       const Scale& scale) {
  rows.check();
  if (values.size() != rows.columns.size() || scale.low.size() != rows.features ||
      scale.span.size() != rows.features) {
    throw std::invalid_argument("one value a column and one range a feature are needed");
  }
  std::vector<std::uint16_t> codes(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    codes[i] = scale.code(values[i], static_cast<std::size_t>(rows.columns[i]));
  }
  return codes;
}

std::vector<std::int64_t> sparse_offsets(const SparseRows& rows,
                                         std::span<const std::uint16_t> codes,
                                         const Layout& layout) {
  check_layout(rows, codes, layout);
  std::vector<std::int64_t> offsets{0};
  offsets.reserve(layout.order.size() + 1);
  const auto whole = static_cast<std::int64_t>(whole_columns(layout.of_zero).size());
  for (const std::int64_t sample : layout.order) {
    const auto [begin, end] = row_of(rows, sample);
    std::int64_t places = whole + (layout.bias != 0 ? 1 : 0);
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin && rows.columns[i] <= rows.columns[i - 1]) {
        throw std::invalid_argument("a row's features do not rise");
      }
      const bool is_whole = layout.of_zero[static_cast<std::size_t>(rows.columns[i])] != 0;
      places += (codes[i] != 0 ? 1 : 0) - (is_whole ? 1 : 0);
    }
    offsets.push_back(offsets.back() + places);
  }
  return offsets;
}

void sparse_codes(const SparseRows& rows, std::span<const std::uint16_t> codes,
                  const Layout& layout, std::span<std::int32_t> columns,
                  std::span<std::uint16_t> to) {
  const std::vector<std::int32_t> whole = whole_columns(layout.of_zero);
  std::size_t place = 0;
  const auto put = [&](std::int32_t column, std::uint16_t code) {
    columns[place] = column;
    to[place++] = code;
  };
  const auto put_zero = [&](std::int32_t column) {
    put(column, layout.of_zero[static_cast<std::size_t>(column)]);
  };
  for (const std::int64_t sample : layout.order) {
    const auto [begin, end] = row_of(rows, sample);
    auto next = whole.begin();
    for (std::size_t i = begin; i < end; ++i) {
      const std::int32_t column = rows.columns[i];
      for (; next != whole.end() && *next < column; ++next) put_zero(*next);
      if (next != whole.end() && *next == column) ++next;
      if (codes[i] != 0) put(column, codes[i]);
    }
    for (; next != whole.end(); ++next) put_zero(*next);
    if (layout.bias != 0) put(static_cast<std::int32_t>(rows.features), layout.bias);
  }
}

template <typename Code>
void dense_codes(const SparseRows& rows, std::span<const std::uint16_t> codes, const Layout& layout,
                 std::span<Code> to) {
  check_layout(rows, codes, layout);
  const std::size_t width = rows.features + (layout.bias != 0 ? 1 : 0);
  if (to.size() != layout.order.size() * width) {
    throw std::invalid_argument("the rows have another size");
  }
  std::size_t place = 0;
  for (const std::int64_t sample : layout.order) {
    const auto [begin, end] = row_of(rows, sample);
    const auto row = to.subspan(place, width);
    std::transform(layout.of_zero.begin(), layout.of_zero.end(), row.begin(),
                   [](std::uint16_t code) { return static_cast<Code>(code); });
    for (std::size_t i = begin; i < end; ++i) {
      row[static_cast<std::size_t>(rows.columns[i])] = static_cast<Code>(codes[i]);
    }
    if (layout.bias != 0) row.back() = static_cast<Code>(layout.bias);
    place += width;
  }
}

template void dense_codes<std::uint8_t>(const SparseRows&, std::span<const std::uint16_t>,
                                        const Layout&, std::span<std::uint8_t>);
template void dense_codes<std::uint16_t>(const SparseRows&, std::span<const std::uint16_t>,
                                         const Layout&, std::span<std::uint16_t>);

}  // namespace catchment::glm
