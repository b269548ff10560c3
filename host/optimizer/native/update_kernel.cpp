// Compiled once per instruction set, with CATCHMENT_KERNELS naming the result
// (host/CMakeLists.txt). Everything but that one symbol has internal linkage and no header's
// function is called, so that no inline function compiled for a wide machine can end up in another
// translation unit. Needs -ffp-contract=off -fno-math-errno -fno-trapping-math; the default
// rounding mode.
#include "rules.hpp"

namespace catchment::optimizer {
namespace {

float widen(float value) { return value; }
float widen(std::uint16_t value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value) << 16);
}

std::uint16_t to_bf16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

void narrow(float value, float& to) { to = value; }
void narrow(float value, std::uint16_t& to) { to = to_bf16(value); }

template <typename Moment, bool kPublish>
void adam_loop(const AdamRun<Moment>& run, const AdamScalars& s) {
  const float* __restrict gradient = run.gradient;
  float* __restrict master = run.master;
  Moment* __restrict first = run.first;
  Moment* __restrict second = run.second;
  std::uint16_t* __restrict parameters = run.parameters;
  const float scale = s.scale, keep = s.keep, first_rate = s.first_rate;
  const float second_keep = s.second_keep, second_rate = s.second_rate;
  const float correction = s.correction, eps = s.eps, step_size = s.step_size;
  for (std::size_t i = 0; i < run.count; ++i) {
    const float g = gradient[i] * scale;
    const float m = widen(first[i]);
    const float new_m = m + first_rate * (g - m);
    const float new_v = widen(second[i]) * second_keep + second_rate * g * g;
    const float denominator = __builtin_sqrtf(new_v) * correction + eps;
    const float w = master[i] * keep - step_size * new_m / denominator;
    narrow(new_m, first[i]);
    narrow(new_v, second[i]);
    master[i] = w;
    if constexpr (kPublish) parameters[i] = to_bf16(w);
  }
}

template <typename Moment>
void adam(const AdamRun<Moment>& run, const AdamScalars& scalars) {
  run.parameters != nullptr ? adam_loop<Moment, true>(run, scalars)
                            : adam_loop<Moment, false>(run, scalars);
}

template <typename Moment, bool kPublish, bool kNesterov>
void sgd_loop(const SgdRun<Moment>& run, const SgdScalars& s) {
  const float* __restrict gradient = run.gradient;
  float* __restrict master = run.master;
  Moment* __restrict momentum = run.momentum;
  std::uint16_t* __restrict parameters = run.parameters;
  const float scale = s.scale, decay = s.decay, keep = s.momentum, rate = s.rate;
  for (std::size_t i = 0; i < run.count; ++i) {
    const float g = gradient[i] * scale + decay * master[i];
    const float velocity = widen(momentum[i]) * keep + g;
    const float direction = kNesterov ? velocity * keep + g : velocity;
    const float w = master[i] - rate * direction;
    narrow(velocity, momentum[i]);
    master[i] = w;
    if constexpr (kPublish) parameters[i] = to_bf16(w);
  }
}

template <typename Moment>
void sgd(const SgdRun<Moment>& run, const SgdScalars& scalars) {
  if (run.parameters != nullptr) {
    scalars.nesterov ? sgd_loop<Moment, true, true>(run, scalars)
                     : sgd_loop<Moment, true, false>(run, scalars);
  } else {
    scalars.nesterov ? sgd_loop<Moment, false, true>(run, scalars)
                     : sgd_loop<Moment, false, false>(run, scalars);
  }
}

double squares(const float* gradient, std::size_t count, float scale) {
  constexpr std::size_t kSums = 16;  // independent sums, so that the additions may be a vector
  double sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) {
      const double g = gradient[i + k] * scale;
      sums[k] += g * g;
    }
  }
  double total = 0;
  for (; i < count; ++i) {
    const double g = gradient[i] * scale;
    total += g * g;
  }
  for (const double sum : sums) total += sum;
  return total;
}

void block_sum(const std::uint32_t* block, std::size_t words, BlockSum& sum) {
  std::uint32_t plain[kSumLanes] = {};
  std::uint32_t weighted[kSumLanes] = {};
  for (std::size_t i = 0; i < words; i += kSumLanes) {
    for (std::size_t k = 0; k < kSumLanes; ++k) {
      plain[k] += block[i + k];
      weighted[k] += plain[k];
    }
  }
  for (std::size_t k = 0; k < kSumLanes; ++k) {
    sum.words[k] = plain[k];
    sum.words[kSumLanes + k] = weighted[k];
  }
}

}  // namespace

extern const Kernels CATCHMENT_KERNELS = {
    CATCHMENT_KERNELS_NAME, adam<float>, adam<std::uint16_t>, sgd<float>,
    sgd<std::uint16_t>,     squares,     block_sum,
};

}  // namespace catchment::optimizer
