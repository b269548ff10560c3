#include "worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace catchment::glm {
namespace {

void check_shift(int shift) {
  if (shift < 0 || shift > 62) throw std::invalid_argument("a shift is out of range");
}

}  // namespace

Worker::Worker(WorkerConfig config, Samples samples, std::vector<std::int32_t> labels)
    : config_(std::move(config)), samples_(std::move(samples)), labels_(std::move(labels)) {
  const auto [rows, features] =
      std::visit([](const auto& s) { return std::pair(s.samples(), s.features()); }, samples_);
  if (rows != labels_.size()) throw std::invalid_argument("as many labels as samples are needed");
  if (config_.sigmoid.size() != kSigmoidSegments + 1) {
    throw std::invalid_argument("the sigmoid's table has another size");
  }
  check_shift(config_.forward_shift);
  weights_.resize(features);
  gradient_.resize(features);
}

void Worker::check(std::size_t first, std::size_t count) const {
  if (first > samples() || count > samples() - first) {
    throw std::out_of_range("samples beyond the last");
  }
}

void Worker::resume(std::span<const std::int32_t> weights) {
  if (weights.size() != weights_.size()) throw std::invalid_argument("not a weight a feature");
  std::ranges::copy(weights, weights_.begin());
}

void Worker::weigh(std::vector<std::int32_t> importance) {
  const auto fits = [](std::int32_t each) { return 0 <= each && each <= 1 << kImportanceFraction; };
  if (importance.size() != labels_.size() || !std::ranges::all_of(importance, fits)) {
    throw std::invalid_argument("an importance of 0 to 1 is needed for each sample");
  }
  importance_ = std::move(importance);
}

void Worker::forward(std::size_t first, std::span<std::int32_t> activations) {
  check(first, activations.size());
  std::visit(
      [&](const auto& samples) {
        for (std::size_t k = 0; k < activations.size(); ++k) {
          const std::int64_t sum = samples.dot(first + k, weights_.data());
          const std::int64_t rounded = round_half_even(sum, config_.forward_shift);
          activations[k] =
              static_cast<std::int32_t>(saturate(rounded, kActivationLimit, saturated_));
        }
      },
      samples_);
}

void Worker::backward(std::size_t first, std::span<const std::int32_t> activations,
                      std::int64_t multiplier) {
  check(first, activations.size());
  if (multiplier < 0 || multiplier >> kMultiplierBits != 0) {
    throw std::invalid_argument("the multiplier has more than 16 bits");
  }
  scales_.resize(activations.size());
  for (std::size_t k = 0; k < activations.size(); ++k) {
    std::int64_t derivative =
        derivative_of(config_.loss, config_.sigmoid, activations[k], labels_[first + k]);
    if (!importance_.empty()) {
      derivative = round_half_even(derivative * importance_[first + k], kImportanceFraction);
    }
    scales_[k] = round_half_even(derivative * multiplier, kMultiplierBits);
  }
  std::visit([&](const auto& samples) { samples.accumulate(first, scales_, gradient_.data()); },
             samples_);
}

void Worker::update(std::size_t first, std::size_t last, int shift) {
  check(first, last < first ? samples() + 1 : last - first);
  check_shift(shift);
  saturated_ += std::visit(
      [&](const auto& samples) {
        return samples.update(first, last, shift, weights_.data(), gradient_.data());
      },
      samples_);
}

void Worker::take_gradient(int shift, std::span<std::int32_t> gradient) {
  if (gradient.size() != gradient_.size()) throw std::invalid_argument("not a whole gradient");
  check_shift(shift);
  for (std::size_t j = 0; j < gradient.size(); ++j) {
    const std::int64_t rounded = round_half_even(gradient_[j], shift);
    gradient[j] = static_cast<std::int32_t>(saturate(rounded, kActivationLimit, saturated_));
    gradient_[j] = 0;
  }
}

void Worker::apply(std::span<const std::int32_t> gradient, int shift) {
  if (gradient.size() != weights_.size()) throw std::invalid_argument("not a whole gradient");
  check_shift(shift);
  for (std::size_t j = 0; j < gradient.size(); ++j) {
    const std::int64_t next = weights_[j] - round_half_even(gradient[j], shift);
    weights_[j] = static_cast<std::int32_t>(saturate(next, kWeightLimit, saturated_));
  }
}

void train_epoch(std::span<Worker* const> workers, std::span<const std::int64_t> ends,
                 std::int64_t multiplier, int shift) {
  std::vector<std::int32_t> part;
  std::vector<std::int32_t> full;
  std::size_t first = 0;
  for (const std::int64_t end : ends) {
    const auto last = static_cast<std::size_t>(end);
    if (end < 0 || last < first) throw std::invalid_argument("the mini-batches' ends do not rise");
    full.assign(last - first, 0);
    part.resize(last - first);
    for (Worker* const worker : workers) {
      worker->forward(first, part);
      for (std::size_t k = 0; k < part.size(); ++k) full[k] += part[k];
    }
    for (Worker* const worker : workers) {
      worker->backward(first, full, multiplier);
      worker->update(first, last, shift);
    }
    first = last;
  }
}

}  // namespace catchment::glm
