// What each rail costs, as the ranks measured it (docs/explanation/rails.md, "What a rail costs").
//
// Pure: every rank feeds the same reports in the same order, and so has the same table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "balancer.hpp"

namespace catchment::host::rails {

// What one rank has seen of one rail since its last report.
struct RailSample {
  std::uint64_t bytes = 0;        // of parts that are long enough to tell a rate
  std::uint64_t duration_ns = 0;  // in which they came
  std::uint64_t start_ns = 0;     // the shortest time from a call to the sum of its signatures

  void add(std::uint64_t more, std::uint64_t lasted, std::uint64_t began) {
    bytes += more;
    duration_ns += lasted;
    start_ns = start_ns == 0 || began < start_ns ? began : start_ns;
  }
};

class CostTable {
 public:
  // `costs`: what is believed before anything is measured.
  explicit CostTable(std::vector<RailCost> costs);

  // All ranks' samples, one rank after the other, a sample for each rail.
  void learn(std::span<const RailSample> samples);

  std::span<const RailCost> costs() const { return costs_; }
  // What using k rails at once costs, at k - 1.
  std::span<const std::uint32_t> together_ns() const { return together_ns_; }
  // Reports that were learnt from.
  std::uint32_t version() const { return version_; }

 private:
  std::vector<RailCost> costs_;
  std::vector<std::uint32_t> together_ns_;
  std::vector<std::uint32_t> learnt_;  // reports that told something, of each rail
  std::uint32_t version_ = 0;
};

}  // namespace catchment::host::rails
