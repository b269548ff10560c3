// A queue that has a few entries or none: of thousands of members each has some, so that it takes
// little memory. What has left it is forgotten when it is empty.
#pragma once

#include <cstddef>
#include <vector>

namespace catchment::performance {

template <typename Value>
class ShortQueue {
 public:
  void push_back(const Value& value) { values_.push_back(value); }
  void pop_front() {
    if (++first_ != values_.size()) return;
    values_.clear();
    first_ = 0;
  }

  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] std::size_t size() const { return values_.size() - first_; }
  [[nodiscard]] const Value& front() const { return values_[first_]; }
  [[nodiscard]] auto begin() const { return values_.begin() + static_cast<std::ptrdiff_t>(first_); }
  [[nodiscard]] auto end() const { return values_.end(); }

 private:
  std::vector<Value> values_;
  std::size_t first_ = 0;  // of those that are still there
};

}  // namespace catchment::performance
