// Compiled once per instruction set, with CATCHMENT_KERNELS naming the result
// (host/CMakeLists.txt). Everything but that one symbol has internal linkage and no header's
// function is called but intrinsics, so that no inline function compiled for a wide machine can end
// up in another translation unit. Needs -ffp-contract=off -fno-math-errno -fno-trapping-math; the
// default rounding mode.
#include "rules.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

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

// The loops.  The arrays do not overlap; that is said by ivdep and not by restrict, because the
// sums below read what a loop has written by other pointers.  No prefetches: they were measured,
// and are slower (docs/explanation/optimizer.md).
template <bool kPublish, typename Moment>
inline void step(const Run<Moment>& run, const AdamScalars& s, std::size_t count) {
  const float* gradient = run.gradient;
  float* master = run.master;
  Moment* first = run.first;
  Moment* second = run.second;
  std::uint16_t* parameters = run.parameters;
  const float scale = s.scale, keep = s.keep, first_rate = s.first_rate;
  const float second_keep = s.second_keep, second_rate = s.second_rate;
  const float correction = s.correction, eps = s.eps, step_size = s.step_size;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
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

template <bool kPublish, bool kNesterov, typename Moment>
inline void sgd_step(const Run<Moment>& run, const SgdScalars& s, std::size_t count) {
  const float* gradient = run.gradient;
  float* master = run.master;
  Moment* momentum = run.first;
  std::uint16_t* parameters = run.parameters;
  const float scale = s.scale, decay = s.decay, keep = s.momentum, rate = s.rate;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i] * scale + decay * master[i];
    const float velocity = widen(momentum[i]) * keep + g;
    const float direction = kNesterov ? velocity * keep + g : velocity;
    const float w = master[i] - rate * direction;
    narrow(velocity, momentum[i]);
    master[i] = w;
    if constexpr (kPublish) parameters[i] = to_bf16(w);
  }
}

template <bool kPublish, typename Moment>
inline void step(const Run<Moment>& run, const SgdScalars& s, std::size_t count) {
  s.nesterov ? sgd_step<kPublish, true>(run, s, count) : sgd_step<kPublish, false>(run, s, count);
}

template <typename Moment, typename Scalars>
void plain(const Run<Moment>& run, const Scalars& scalars) {
  run.parameters != nullptr ? step<true>(run, scalars, run.count)
                            : step<false>(run, scalars, run.count);
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

constexpr std::size_t kChunk = kSummedElements;  // short enough to stay in the first cache

// A chunk of parameters to memory, past the caches: nothing has read the lines that it overwrites.
// (Lines that were read are better written through the caches, docs/explanation/optimizer.md.)
void publish(const std::uint16_t* chunk, std::uint16_t* to) {
#if defined(__AVX512F__)
  for (std::size_t i = 0; i < kChunk; i += sizeof(__m512i) / sizeof *to) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_load_si512(chunk + i));
  }
#elif defined(__SSE2__)
  for (std::size_t i = 0; i < kChunk; i += sizeof(__m128i) / sizeof *to) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(chunk + i)));
  }
#else
  __builtin_memcpy(to, chunk, kChunk * sizeof *to);
#endif
}

void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <typename Scalars>
constexpr bool kSecondMoment = false;
template <>
constexpr bool kSecondMoment<AdamScalars> = true;

template <typename Moment>
struct RunningSums {
  RunningSum master, first, second;

  template <bool kSecond>
  void add(const Run<Moment>& run, std::size_t at) {
    master.add(run.master + at, kChunk * sizeof(float));
    first.add(run.first + at, kChunk * sizeof(Moment));
    if constexpr (kSecond) second.add(run.second + at, kChunk * sizeof(Moment));
  }

  template <bool kSecond>
  void store(SectionSums& to) const {
    master.store(to.master);
    first.store(to.first);
    if constexpr (kSecond) second.store(to.second);
  }
};

// What a chunk became is summed one chunk later: a wide load of what narrow stores have just
// written would wait for them.
template <bool kPublish, typename Moment, typename Scalars>
void summed_loop(const SummedRun<Moment>& summed, const Scalars& scalars) {
  constexpr bool kSecond = kSecondMoment<Scalars>;
  const Run<Moment>& run = summed.run;
  RunningSums<Moment> before, after;
  RunningSum parameters;
  alignas(kCacheLine) std::uint16_t published[2][kChunk];
  const auto finish = [&](std::size_t at) {
    after.template add<kSecond>(run, at);
    if constexpr (kPublish) {
      const std::uint16_t* const chunk = published[at / kChunk % 2];
      parameters.add(chunk, sizeof published[0]);
      publish(chunk, run.parameters + at);
    }
  };
  for (std::size_t at = 0; at < run.count; at += kChunk) {
    before.template add<kSecond>(run, at);
    const Run<Moment> chunk{run.gradient + at,
                            run.master + at,
                            run.first + at,
                            kSecond ? run.second + at : nullptr,
                            published[at / kChunk % 2],
                            kChunk};
    step<kPublish>(chunk, scalars, kChunk);
    if (at > 0) finish(at - kChunk);
  }
  if (run.count > 0) finish(run.count - kChunk);
  before.template store<kSecond>(*summed.before);
  after.template store<kSecond>(*summed.after);
  if constexpr (kPublish) parameters.store(summed.after->parameters);
}

template <typename Moment, typename Scalars>
void summed(const SummedRun<Moment>& run, const Scalars& scalars) {
  run.run.parameters != nullptr ? summed_loop<true>(run, scalars)
                                : summed_loop<false>(run, scalars);
}

}  // namespace

extern const Kernels CATCHMENT_KERNELS = {
    CATCHMENT_KERNELS_NAME,
    plain<float, AdamScalars>,
    plain<std::uint16_t, AdamScalars>,
    plain<float, SgdScalars>,
    plain<std::uint16_t, SgdScalars>,
    summed<float, AdamScalars>,
    summed<std::uint16_t, AdamScalars>,
    summed<float, SgdScalars>,
    summed<std::uint16_t, SgdScalars>,
    fence,
    squares,
    block_sum,
};

}  // namespace catchment::optimizer
