#include <array>
#include <string_view>

#include "rules.hpp"

namespace catchment::optimizer {

const Kernels* find_kernels(const char* name) {
  const std::string_view wanted = name;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  const bool avx512 =
      avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  const std::array<const Kernels*, 3> present = {avx512 ? &kAvx512Kernels : nullptr,
                                                 avx2 ? &kAvx2Kernels : nullptr, &kBaseKernels};
#else
  const std::array<const Kernels*, 1> present = {&kBaseKernels};
#endif
  for (const Kernels* kernels : present) {
    if (kernels != nullptr && (wanted.empty() || wanted == kernels->name)) return kernels;
  }
  return nullptr;
}

}  // namespace catchment::optimizer
