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

// Elements from `begin` to `end`.  The arrays do not overlap; that is said by ivdep and not by
// restrict, because the sums below read what the loop has written by other pointers.  No
// prefetches, no streaming stores: both were measured, and both are slower (docs/optimizer.md).
template <typename Moment, bool kPublish>
inline void adam_loop(const AdamRun<Moment>& run, const AdamScalars& s, std::size_t begin,
                      std::size_t end) {
  const float* gradient = run.gradient;
  float* master = run.master;
  Moment* first = run.first;
  Moment* second = run.second;
  std::uint16_t* parameters = run.parameters;
  const float scale = s.scale, keep = s.keep, first_rate = s.first_rate;
  const float second_keep = s.second_keep, second_rate = s.second_rate;
  const float correction = s.correction, eps = s.eps, step_size = s.step_size;
#pragma GCC ivdep
  for (std::size_t i = begin; i < end; ++i) {
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
  run.parameters != nullptr ? adam_loop<Moment, true>(run, scalars, 0, run.count)
                            : adam_loop<Moment, false>(run, scalars, 0, run.count);
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

// The compiler's own vectors, as wide as a register: as arrays the sums would go through memory.
#if defined(__AVX512F__)
constexpr std::size_t kWidth = 64;
#elif defined(__AVX2__)
constexpr std::size_t kWidth = 32;
#else
constexpr std::size_t kWidth = 16;
#endif
constexpr std::size_t kPartLanes = kWidth / sizeof(std::uint32_t);
constexpr std::size_t kParts = kSumLanes / kPartLanes;
typedef std::uint32_t Part __attribute__((vector_size(kWidth)));

struct RunningSum {
  Part plain[kParts] = {};
  Part weighted[kParts] = {};

  // `bytes`: a multiple of kSumLanes words.
  void add(const void* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kParts * kWidth) {
      for (std::size_t part = 0; part < kParts; ++part) {
        Part words;  // copied: floats and bf16 are read as words
        __builtin_memcpy(&words, static_cast<const char*>(from) + at + part * kWidth, kWidth);
        plain[part] += words;
        weighted[part] += plain[part];
      }
    }
  }

  void store(BlockSum& sum) const {
    for (std::size_t part = 0; part < kParts; ++part) {
      std::uint32_t* const to = sum.words + part * kPartLanes;
      __builtin_memcpy(to, &plain[part], kWidth);
      __builtin_memcpy(to + kSumLanes, &weighted[part], kWidth);
    }
  }
};

void block_sum(const std::uint32_t* block, std::size_t words, BlockSum& sum) {
  RunningSum running;
  running.add(block, words * sizeof(std::uint32_t));
  running.store(sum);
}

constexpr std::size_t kChunk = 64;  // elements: short enough to stay in the first cache

template <typename Moment, bool kPublish>
void summed_adam_loop(const SummedAdamRun<Moment>& summed, const AdamScalars& scalars) {
  const AdamRun<Moment>& run = summed.run;
  RunningSum master_before, first_before, second_before;
  RunningSum parameters_after, master_after, first_after, second_after;
  for (std::size_t i = 0; i < run.count; i += kChunk) {
    master_before.add(run.master + i, kChunk * sizeof(float));
    first_before.add(run.first + i, kChunk * sizeof(Moment));
    second_before.add(run.second + i, kChunk * sizeof(Moment));
    adam_loop<Moment, kPublish>(run, scalars, i, i + kChunk);
    master_after.add(run.master + i, kChunk * sizeof(float));
    first_after.add(run.first + i, kChunk * sizeof(Moment));
    second_after.add(run.second + i, kChunk * sizeof(Moment));
    if constexpr (kPublish)
      parameters_after.add(run.parameters + i, kChunk * sizeof(std::uint16_t));
  }
  master_before.store(summed.before->master);
  first_before.store(summed.before->first);
  second_before.store(summed.before->second);
  master_after.store(summed.after->master);
  first_after.store(summed.after->first);
  second_after.store(summed.after->second);
  if constexpr (kPublish) parameters_after.store(summed.after->parameters);
}

template <typename Moment>
void summed_adam(const SummedAdamRun<Moment>& summed, const AdamScalars& scalars) {
  summed.run.parameters != nullptr ? summed_adam_loop<Moment, true>(summed, scalars)
                                   : summed_adam_loop<Moment, false>(summed, scalars);
}

}  // namespace

extern const Kernels CATCHMENT_KERNELS = {
    CATCHMENT_KERNELS_NAME,
    adam<float>,
    adam<std::uint16_t>,
    summed_adam<float>,
    summed_adam<std::uint16_t>,
    sgd<float>,
    sgd<std::uint16_t>,
    squares,
    block_sum,
};

}  // namespace catchment::optimizer
