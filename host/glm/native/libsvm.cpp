#include "libsvm.hpp"

#include <charconv>
#include <cmath>

namespace catchment::glm {
namespace {

constexpr std::string_view kBlank = " \t\r\v\f";
constexpr std::size_t kQuoted = 30;

std::string quoted(std::string_view token) {
  std::string text;
  for (const char c : token.substr(0, kQuoted)) {
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return "'" + text + (token.size() > kQuoted ? "...'" : "'");
}

std::string_view next_token(std::string_view& rest) {
  const std::size_t begin = rest.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return rest = {};
  rest.remove_prefix(begin);
  const std::string_view token = rest.substr(0, rest.find_first_of(kBlank));
  rest.remove_prefix(token.size());
  return token;
}

template <typename Number>
bool parse(std::string_view token, Number& number) {
  if (!token.empty() && token.front() == '+') token.remove_prefix(1);
  if (token.empty() || token.front() == '+') return false;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, number);
  if (stop != end) return false;
  if constexpr (std::is_floating_point_v<Number>) {
    if (error == std::errc::result_out_of_range) {
      number = std::strtod(std::string(token).c_str(), nullptr);
      return std::isfinite(number);  // too small is 0, too large is an error
    }
    return error == std::errc{} && std::isfinite(number);
  }
  return error == std::errc{};
}

class LineParser {
 public:
  LineParser(SampleLines& lines, std::int32_t base, std::int32_t features)
      : lines_(lines), base_(base), features_(features) {}

  void parse_line(std::string_view rest, std::size_t number) {
    rest = rest.substr(0, rest.find('#'));
    const std::string_view first = next_token(rest);
    if (first.empty()) return;
    double label = 0;
    if (!parse(first, label)) {
      throw SyntaxError(number, quoted(first) + " is no label: a finite number is expected");
    }
    std::int64_t before = -1;
    for (auto token = next_token(rest); !token.empty(); token = next_token(rest)) {
      if (token.starts_with("qid:")) continue;
      before = pair(token, before, number);
    }
    lines_.labels.push_back(label);
    lines_.offsets.push_back(static_cast<std::int64_t>(lines_.columns.size()));
  }

 private:
  std::int64_t pair(std::string_view token, std::int64_t before, std::size_t line) {
    const std::size_t colon = token.find(':');
    if (colon == std::string_view::npos) {
      throw SyntaxError(line, quoted(token) + " is no index:value pair");
    }
    std::int64_t index = 0;
    double value = 0;
    if (!parse(token.substr(0, colon), index)) {
      throw SyntaxError(line, quoted(token) + " has no integer before its colon");
    }
    if (index < base_ || index - base_ >= features_) {
      const std::int64_t last = std::int64_t{base_} + features_ - 1;
      throw SyntaxError(line, "index " + std::to_string(index) + " is not in " +
                                  std::to_string(base_) + " to " + std::to_string(last));
    }
    if (index - base_ <= before) {
      throw SyntaxError(line, "index " + std::to_string(index) + " after " +
                                  std::to_string(before + base_) + ": indices must rise");
    }
    if (!parse(token.substr(colon + 1), value)) {
      throw SyntaxError(line, quoted(token) + " has no finite number after its colon");
    }
    if (value != 0) {
      lines_.columns.push_back(static_cast<std::int32_t>(index - base_));
      lines_.values.push_back(value);
    }
    return index - base_;
  }

  SampleLines& lines_;
  std::int32_t base_;
  std::int32_t features_;
};

}  // namespace

SampleLines parse_libsvm(std::string_view text, std::int32_t base, std::int32_t features) {
  SampleLines lines;
  lines.offsets.push_back(0);
  LineParser parser(lines, base, features);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    parser.parse_line(text.substr(0, end), number);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace catchment::glm
