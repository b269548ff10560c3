// A worker of P4SGD in software: its share of the features of all samples, and their weights.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "numbers.hpp"
#include "samples.hpp"

namespace catchment::glm {

struct WorkerConfig {
  Loss loss = Loss::kSquares;
  int forward_shift = 0;
  std::vector<std::int32_t> sigmoid;  // kSigmoidSegments + 1 entries
};

using Samples =
    std::variant<SparseSamples, DenseSamples<std::uint8_t>, DenseSamples<std::uint16_t>>;

class Worker {
 public:
  // Throws std::invalid_argument when there are not as many labels as samples, or no whole table.
  Worker(WorkerConfig config, Samples samples, std::vector<std::int32_t> labels);

  // Begins with these weights; throws std::invalid_argument unless there is one a feature.
  void resume(std::span<const std::int32_t> weights);
  // Gives each sample an importance, kImportanceFraction fraction bits, 0 to 1; until then it is 1.
  // Throws std::invalid_argument when one is out of range, or there are more or fewer than samples.
  void weigh(std::vector<std::int32_t> importance);

  std::size_t samples() const { return labels_.size(); }
  std::size_t features() const { return weights_.size(); }

  // The partial activations of the samples from `first` on; throws std::out_of_range.
  void forward(std::size_t first, std::span<std::int32_t> activations);
  // Adds the gradient of the samples from `first` on, whose full activations these are.
  void backward(std::size_t first, std::span<const std::int32_t> activations,
                std::int64_t multiplier);
  // Takes the gradient of the samples first..last-1, all that were added, from the weights.
  void update(std::size_t first, std::size_t last, int shift);

  // Data-parallel: the gradient rounded to 2^shift, saturated as partial activations are; cleared.
  void take_gradient(int shift, std::span<std::int32_t> gradient);
  // Takes a sum of such gradients from the weights.
  void apply(std::span<const std::int32_t> gradient, int shift);

  std::span<std::int32_t> weights() { return weights_; }
  std::uint64_t saturated() const { return saturated_; }

 private:
  void check(std::size_t first, std::size_t count) const;

  WorkerConfig config_;
  Samples samples_;
  std::vector<std::int32_t> labels_;
  std::vector<std::int32_t> importance_;  // empty: 1
  std::vector<std::int32_t> weights_;
  std::vector<std::int64_t> gradient_;
  std::vector<std::int64_t> scales_;
  std::uint64_t saturated_ = 0;
};

// One epoch of workers in one process: each mini-batch ends at the sample that `ends` names.
void train_epoch(std::span<Worker* const> workers, std::span<const std::int64_t> ends,
                 std::int64_t multiplier, int shift);

}  // namespace catchment::glm
