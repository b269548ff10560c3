// LIBSVM's text format: a label and index:value pairs a line.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace catchment::glm {

struct SampleLines {
  std::vector<double> labels;
  std::vector<std::int64_t> offsets;  // of each line's first pair, and the end
  std::vector<std::int32_t> columns;  // as written minus `base`
  std::vector<double> values;
};

class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(std::size_t at_line, const std::string& what)
      : std::runtime_error(what), line(at_line) {}
  std::size_t line;  // 1 is the first
};

// Empty lines and what follows # are left out; a qid:n pair is, too.  Indices are base to
// base + features - 1.  Throws SyntaxError.
SampleLines parse_libsvm(std::string_view text, std::int32_t base, std::int32_t features);

}  // namespace catchment::glm
