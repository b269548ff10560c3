// One optimizer step on a whole layer: what was read is checked, updated in place and summed again,
// block by block, so that every byte passes through the caches once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "rules.hpp"
#include "work_pool.hpp"

namespace catchment::optimizer {

// Elements that share a checksum.  Shards are whole units: in every section a shard starts on a
// page.
constexpr std::size_t kUnit = 2048;

enum class MomentType : std::uint8_t { kFp32, kBf16 };

// Sections of a layer in memory, each whole and padded to units.  `second` and `parameters` may be
// null: SGD has one moment, and fp32 parameters are the master weights.
struct Sections {
  std::byte* parameters = nullptr;
  std::byte* master = nullptr;
  std::byte* first = nullptr;
  std::byte* second = nullptr;
  MomentType moments = MomentType::kFp32;

  std::size_t moment_bytes() const { return moments == MomentType::kFp32 ? 4 : 2; }
};

// A tensor to be updated; tensors left out keep their state.
struct TensorStep {
  std::size_t offset;
  std::size_t count;
  std::variant<AdamScalars, SgdScalars> scalars;
};

// Digests of one shard's sections; those of a missing section are 0.
struct ShardDigests {
  std::uint32_t parameters = 0;
  std::uint32_t master = 0;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

struct UpdateResult {
  std::vector<ShardDigests> before;  // as read; parameters 0: they are not part of what was read
  std::vector<ShardDigests> after;
};

// `shard_units`: units of each shard, in order.  `steps`: ascending, not overlapping.  Without
// `summed` the digests mean nothing: to measure what they cost.
UpdateResult update_layer(const Kernels& kernels, WorkPool& pool, const Sections& sections,
                          const float* gradient, std::span<const std::size_t> shard_units,
                          std::span<const TensorStep> steps, bool summed = true);

// Digests of a layer's shards in one section of `element_bytes`.
std::vector<std::uint32_t> section_digests(const Kernels& kernels, WorkPool& pool,
                                           const std::byte* section, std::size_t element_bytes,
                                           std::span<const std::size_t> shard_units);

}  // namespace catchment::optimizer
