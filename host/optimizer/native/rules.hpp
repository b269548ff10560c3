// One optimizer step on a run of elements.  update_kernel.cpp is compiled once per instruction set;
// all of them give the same bits (no fused multiply-add, every operation rounded to fp32 by
// itself).
#pragma once

#include <cstddef>
#include <cstdint>

#include "catchment/common/cache_line.hpp"

namespace catchment::optimizer {

// What a step needs besides the elements; fp32, computed by the caller in double.
struct AdamScalars {
  float scale;        // of the summed gradient: 1 / (workers x loss scale), times the clip factor
  float keep;         // 1 - lr x decoupled decay
  float first_rate;   // 1 - beta1
  float second_keep;  // beta2
  float second_rate;  // 1 - beta2
  float correction;   // 1 / sqrt(1 - beta2^t)
  float eps;
  float step_size;  // lr / (1 - beta1^t)
};

struct SgdScalars {
  float scale;
  float decay;     // L2, added to the gradient
  float momentum;  // 0: none
  float rate;      // lr
  bool nesterov;
};

// Pointers to the first element of the run.  `first`, `second`: moments, fp32 or bf16; SGD has no
// second.  `parameters`: bf16 copy of the new master weights, or null.
template <typename Moment>
struct Run {
  const float* gradient;
  float* master;
  Moment* first;
  Moment* second;
  std::uint16_t* parameters;
  std::size_t count;
};

// Fletcher sums of a block in 16 lanes of 32-bit words, mod 2^32: per lane the sum of its words,
// and the sum of those partial sums.  A changed word always changes them, so does a swap within a
// lane.
constexpr std::size_t kSumLanes = 16;
struct BlockSum {
  std::uint32_t words[2 * kSumLanes];
};

// The sums of one block of each section, before or after a step.  Sections that are not there are
// left as they were.
struct SectionSums {
  BlockSum parameters;
  BlockSum master;
  BlockSum first;
  BlockSum second;
};

// A step on a whole block, and the sums of what it read and of what it wrote.  `count`: a multiple
// of kSummedElements; `parameters` begin on a cache line, since they bypass the caches.
template <typename Moment>
struct SummedRun {
  Run<Moment> run;
  SectionSums* before;
  SectionSums* after;
};
constexpr std::size_t kSummedElements = 64;

// One compiled variant of the kernels.
struct Kernels {
  const char* name;
  void (*adam)(const Run<float>&, const AdamScalars&);
  void (*adam_bf16)(const Run<std::uint16_t>&, const AdamScalars&);
  void (*sgd)(const Run<float>&, const SgdScalars&);
  void (*sgd_bf16)(const Run<std::uint16_t>&, const SgdScalars&);
  // Summed steps go over all arrays in one sweep: one array after the other would be as slow as
  // the memory is far.
  void (*summed_adam)(const SummedRun<float>&, const AdamScalars&);
  void (*summed_adam_bf16)(const SummedRun<std::uint16_t>&, const AdamScalars&);
  void (*summed_sgd)(const SummedRun<float>&, const SgdScalars&);
  void (*summed_sgd_bf16)(const SummedRun<std::uint16_t>&, const SgdScalars&);
  // Called after summed steps, before another thread may read what they wrote.
  void (*fence)();
  // Sum of squares of gradient x scale, in double, in an order that depends on `count` alone.
  double (*squares)(const float* gradient, std::size_t count, float scale);
  // `words`: a multiple of kSumLanes.
  void (*block_sum)(const std::uint32_t* block, std::size_t words, BlockSum& sum);
};

extern const Kernels kBaseKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

// The variant called `name` ("avx512", "avx2", "base"), or the best one for ""; null when this
// processor lacks it.
const Kernels* find_kernels(const char* name);

}  // namespace catchment::optimizer
