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

// Four arrays are more streams than a prefetcher may follow: lines are asked for this many elements
// ahead.
constexpr std::size_t kLine = 16;
constexpr std::size_t kChunk = 64;
constexpr std::size_t kAhead = 512;

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
  const auto one = [&](std::size_t i) {
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
  };
  std::size_t i = 0;
  for (; i + kChunk <= run.count; i += kChunk) {
    for (std::size_t line = 0; line < kChunk; line += kLine) {
      __builtin_prefetch(gradient + i + kAhead + line);
      __builtin_prefetch(master + i + kAhead + line, 1);
      __builtin_prefetch(first + i + kAhead + line, 1);
      __builtin_prefetch(second + i + kAhead + line, 1);
    }
    for (std::size_t k = 0; k < kChunk; ++k) one(i + k);
  }
  for (; i < run.count; ++i) one(i);
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
typedef Part UnalignedPart __attribute__((aligned(4), may_alias));

void block_sum(const std::uint32_t* block, std::size_t words, BlockSum& sum) {
  Part plain[kParts] = {};
  Part weighted[kParts] = {};
  for (std::size_t i = 0; i < words; i += kSumLanes) {
    for (std::size_t part = 0; part < kParts; ++part) {
      plain[part] += *reinterpret_cast<const UnalignedPart*>(block + i + part * kPartLanes);
      weighted[part] += plain[part];
    }
  }
  for (std::size_t part = 0; part < kParts; ++part) {
    std::uint32_t* const to = sum.words + part * kPartLanes;
    *reinterpret_cast<UnalignedPart*>(to) = plain[part];
    *reinterpret_cast<UnalignedPart*>(to + kSumLanes) = weighted[part];
  }
}

}  // namespace

extern const Kernels CATCHMENT_KERNELS = {
    CATCHMENT_KERNELS_NAME, adam<float>, adam<std::uint16_t>, sgd<float>,
    sgd<std::uint16_t>,     squares,     block_sum,
};

}  // namespace catchment::optimizer
