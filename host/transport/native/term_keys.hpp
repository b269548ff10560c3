// The keys of a stream's tags.  One serves for all numbers, or each for a term of 2^bits numbers;
// then those of two terms are in use at a time, and the next one takes the older one's place
// (docs/explanation/tags.md).
#pragma once

#include <array>
#include <cstdint>

#include "frame_tag.hpp"

namespace catchment::host {

class TermKeys {
 public:
  // `bits` 0: one key for all numbers.  Otherwise `key` is that of the terms 0 and 1.
  explicit TermKeys(const TagKey& key, std::uint32_t bits = 0)
      : keys_{key, key}, bits_(bits), odd_(bits == 0 ? 0 : std::uint32_t{1} << bits) {}

  const TagKey& of(std::uint32_t number) const { return keys_[(number & odd_) != 0 ? 1 : 0]; }
  bool follow() const { return bits_ != 0; }
  // The older of the two terms.
  std::uint64_t term() const { return term_; }

  // The key of term `next`: only that of the term behind the two in use is taken.
  bool take(std::uint64_t next, const TagKey& key) {
    if (!follow() || next != term_ + 2) return false;
    keys_[next & 1] = key;
    ++term_;
    return true;
  }
  // The first number that the keys do not serve for.  A 256th of a term is kept back: vectors under
  // way are older than what they acknowledge.
  std::uint64_t end() const {
    return ((term_ + 2) << bits_) - (std::uint64_t{1} << (bits_ - kKeptBackBits));
  }
  // The term that all have come to, once they have the sums of all numbers before `acknowledged`;
  // 0 while the older key may still be needed.  What the network delays is younger than an eighth
  // of a term.
  std::uint64_t due(std::uint64_t acknowledged) const {
    const std::uint64_t came = term_ + 1;
    const std::uint64_t from = (came << bits_) + (std::uint64_t{1} << (bits_ - kDelayedBits));
    return acknowledged >= from ? came : 0;
  }

  static constexpr std::uint32_t kLeastBits = 8;

 private:
  static constexpr std::uint32_t kKeptBackBits = 8;
  static constexpr std::uint32_t kDelayedBits = 3;

  std::array<TagKey, 2> keys_;  // of even terms, of odd ones
  std::uint32_t bits_;
  std::uint32_t odd_;  // the bit of a number that is 1 in odd terms
  std::uint64_t term_ = 0;
};

}  // namespace catchment::host
