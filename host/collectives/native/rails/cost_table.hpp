// What each rail costs for operations of each size, as the ranks measured it
// (docs/explanation/rails.md, "What a rail costs").
//
// Pure: every rank feeds the same reports in the same order, and so has the same table.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "balancer.hpp"

namespace catchment::host::rails {

// Classes are of operations of up to 2^class bytes of the wire.
inline constexpr std::uint32_t kLeastClass = 8;
inline constexpr std::uint32_t kMostClass = 36;
inline constexpr std::uint32_t kClasses = kMostClass + 1;

std::uint32_t size_class(std::uint64_t bytes);

// What one rank has seen of a rail in operations of one class since it last said so; as it travels.
struct RailSample {
  std::uint8_t rail = 0;
  std::uint8_t size_class = 0;  // 0: there is none
  std::uint8_t beside = 0;      // 1: while other rails carried the other parts
  std::uint8_t reserved = 0;
  std::uint32_t start_ns = 0;      // the shortest
  std::uint32_t bytes_per_ms = 0;  // 0: the parts were too short to tell a rate
};

// Whether both are about the same rail, class and company.
inline bool same(const RailSample& one, const RailSample& other) {
  return one.rail == other.rail && one.size_class == other.size_class && one.beside == other.beside;
}

class CostTable {
 public:
  // `believed`: what is believed before anything is measured.
  explicit CostTable(std::vector<RailCost> believed);

  // All ranks' samples, one rank after the other, `each` of every rank.  What some rank has no
  // sample of stays as it is.
  void learn(std::span<const RailSample> samples, std::size_t each);

  // Of an operation of `bytes` of the wire.  What is not known of its class is taken from the
  // nearest one; what is known of no class alone, from what is known beside other rails, and the
  // other way round.
  std::vector<RailCost> costs(std::uint64_t bytes) const;
  // What using k rails at once costs, at k - 1.
  std::span<const std::uint32_t> together_ns() const { return together_ns_; }
  // Reports that were learnt from.
  std::uint32_t version() const { return version_; }

 private:
  struct Mean {
    std::uint32_t value = 0;
    std::uint32_t reports = 0;

    void learn(std::uint64_t measured);
  };
  using Means = std::array<Mean, kClasses>;
  struct Known {
    Means starts;
    Means rates;
  };

  // Of the nearest class of which something is known; 0: of none.
  static std::uint32_t nearest(const Means& means, std::uint32_t size_class);

  std::vector<RailCost> believed_;
  std::vector<Known> alone_;
  std::vector<Known> beside_;
  std::vector<std::uint32_t> together_ns_;
  std::uint32_t version_ = 0;
};

}  // namespace catchment::host::rails
