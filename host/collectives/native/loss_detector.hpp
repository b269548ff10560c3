// Which vectors were lost although they were sent again.  Pure.
//
// Vectors are numbered in the order in which they leave, each repetition anew.  When a sum comes
// back of a vector that left once, and later than a repetition whose sum is still missing, that
// repetition was lost too: no timer has to run out for it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "catchment/common/serial.hpp"
#include "consumer_window.hpp"

namespace catchment::host {

class LossDetector {
 public:
  // places: a power of two, the vectors that can be under way.
  explicit LossDetector(std::uint32_t places) : mask_(places - 1), left_(places) {}

  // Notes that vector `seq` left; `again`: not for the first time.
  void on_sent(Seq seq, bool again) {
    Left& left = left_[seq & mask_];
    left = {++count_, again};
    if (again) repeated_.push_back({seq, count_});
  }

  // Notes that the sum of vector `seq` is here, for the first time; whether it left but once.
  bool on_received(Seq seq) {
    const Left& left = left_[seq & mask_];
    if (!left.again && left.number > newest_) newest_ = left.number;
    return !left.again;
  }

  // Takes the next vector that was lost and is to be sent once more.
  std::optional<Seq> take_lost(const ConsumerWindow& consumer) {
    for (; !repeated_.empty(); repeated_.pop_front()) {
      const Repeated first = repeated_.front();
      const bool open =
          consumer.missing(first.seq) && left_[first.seq & mask_].number == first.number;
      if (!open) continue;
      if (first.number + kDisorder > newest_) return std::nullopt;
      repeated_.pop_front();
      return first.seq;
    }
    return std::nullopt;
  }

 private:
  // How many vectors may pass one that is only late.
  static constexpr std::uint64_t kDisorder = 8;
  struct Left {
    std::uint64_t number = 0;
    bool again = false;
  };
  struct Repeated {
    Seq seq = 0;
    std::uint64_t number = 0;
  };

  std::uint32_t mask_;
  std::vector<Left> left_;  // by place
  std::uint64_t count_ = 0;
  std::uint64_t newest_ = 0;  // of those whose sum is here
  std::deque<Repeated> repeated_;
};

}  // namespace catchment::host
