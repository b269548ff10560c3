#include "layer_update.hpp"

#include <algorithm>
#include <numeric>

#include "checksum.hpp"

namespace catchment::optimizer {
namespace {

// The checksums of one block, per section.
struct BlockSums {
  std::uint32_t parameters = 0;
  std::uint32_t master = 0;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

std::uint32_t seal(const BlockSum& sums) { return crc32c(std::as_bytes(std::span(sums.words))); }

std::uint32_t sum(const Kernels& kernels, const std::byte* section, std::size_t unit,
                  std::size_t element_bytes) {
  const std::size_t bytes = kUnit * element_bytes;
  BlockSum sums;
  kernels.block_sum(reinterpret_cast<const std::uint32_t*>(section + unit * bytes),
                    bytes / sizeof(std::uint32_t), sums);
  return seal(sums);
}

// Returns the checksums of one unit's master weights and moments; that of the parameters is added
// once they exist.
BlockSums state_sums(const Kernels& kernels, const Sections& s, std::size_t unit) {
  BlockSums sums;
  sums.master = sum(kernels, s.master, unit, sizeof(float));
  sums.first = sum(kernels, s.first, unit, s.moment_bytes());
  if (s.second != nullptr) sums.second = sum(kernels, s.second, unit, s.moment_bytes());
  return sums;
}

template <typename Moment>
Moment* moment(std::byte* section, std::size_t at) {
  return section == nullptr ? nullptr : reinterpret_cast<Moment*>(section) + at;
}

template <typename Moment>
Run<Moment> run_of(const Sections& s, const float* gradient, std::size_t begin, std::size_t end) {
  return {gradient + begin,
          reinterpret_cast<float*>(s.master) + begin,
          moment<Moment>(s.first, begin),
          moment<Moment>(s.second, begin),
          moment<std::uint16_t>(s.parameters, begin),
          end - begin};
}

void step(const Kernels& kernels, const Sections& s, const float* gradient,
          const TensorStep& tensor, std::size_t begin, std::size_t end) {
  const auto* const adam = std::get_if<AdamScalars>(&tensor.scalars);
  const auto* const sgd = std::get_if<SgdScalars>(&tensor.scalars);
  if (s.moments == MomentType::kFp32) {
    const auto run = run_of<float>(s, gradient, begin, end);
    adam != nullptr ? kernels.adam(run, *adam) : kernels.sgd(run, *sgd);
  } else {
    const auto run = run_of<std::uint16_t>(s, gradient, begin, end);
    adam != nullptr ? kernels.adam_bf16(run, *adam) : kernels.sgd_bf16(run, *sgd);
  }
}

BlockSums seal(const SectionSums& sums, const Sections& s, bool parameters) {
  return {parameters ? seal(sums.parameters) : 0, seal(sums.master), seal(sums.first),
          s.second != nullptr ? seal(sums.second) : 0};
}

// The step of one whole unit of one tensor with both of its checksums, in one sweep.
void summed_step(const Kernels& kernels, const Sections& s, const float* gradient,
                 const TensorStep& tensor, std::size_t unit, BlockSums& before, BlockSums& after) {
  const auto* const adam = std::get_if<AdamScalars>(&tensor.scalars);
  const auto* const sgd = std::get_if<SgdScalars>(&tensor.scalars);
  const std::size_t from = unit * kUnit;
  SectionSums read;
  SectionSums written;
  if (s.moments == MomentType::kFp32) {
    const SummedRun<float> run{run_of<float>(s, gradient, from, from + kUnit), &read, &written};
    adam != nullptr ? kernels.summed_adam(run, *adam) : kernels.summed_sgd(run, *sgd);
  } else {
    const SummedRun<std::uint16_t> run{run_of<std::uint16_t>(s, gradient, from, from + kUnit),
                                       &read, &written};
    adam != nullptr ? kernels.summed_adam_bf16(run, *adam) : kernels.summed_sgd_bf16(run, *sgd);
  }
  before = seal(read, s, false);
  after = seal(written, s, s.parameters != nullptr);
}

std::vector<ShardDigests> fold(std::span<const BlockSums> blocks,
                               std::span<const std::size_t> shard_units, const Sections& s,
                               bool parameters) {
  std::vector<ShardDigests> digests;
  std::vector<std::uint32_t> column;
  std::size_t first = 0;
  for (const std::size_t units : shard_units) {
    const auto digest = [&](bool present, std::uint32_t BlockSums::* field) -> std::uint32_t {
      if (!present) return 0;
      column.clear();
      for (const BlockSums& block : blocks.subspan(first, units)) column.push_back(block.*field);
      return crc32c(std::as_bytes(std::span(column)));
    };
    digests.push_back({digest(parameters && s.parameters != nullptr, &BlockSums::parameters),
                       digest(true, &BlockSums::master), digest(true, &BlockSums::first),
                       digest(s.second != nullptr, &BlockSums::second)});
    first += units;
  }
  return digests;
}

}  // namespace

UpdateResult update_layer(const Kernels& kernels, WorkPool& pool, const Sections& sections,
                          const float* gradient, std::span<const std::size_t> shard_units,
                          std::span<const TensorStep> steps, bool summed) {
  const std::size_t units = std::accumulate(shard_units.begin(), shard_units.end(), std::size_t{0});
  std::vector<BlockSums> before(units);
  std::vector<BlockSums> after(units);
  const bool aligned = reinterpret_cast<std::uintptr_t>(sections.parameters) % kCacheLine == 0;
  pool.run(units, [&](std::size_t begin, std::size_t end) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      const std::size_t from = unit * kUnit;
      const std::size_t to = from + kUnit;
      auto tensor = std::partition_point(
          steps.begin(), steps.end(),
          [from](const TensorStep& each) { return each.offset + each.count <= from; });
      const bool whole =
          tensor != steps.end() && tensor->offset <= from && tensor->offset + tensor->count >= to;
      if (summed && whole && aligned) {
        summed_step(kernels, sections, gradient, *tensor, unit, before[unit], after[unit]);
        continue;
      }
      if (summed) before[unit] = state_sums(kernels, sections, unit);
      for (; tensor != steps.end() && tensor->offset < to; ++tensor) {
        const std::size_t first = std::max(from, tensor->offset);
        const std::size_t last = std::min(to, tensor->offset + tensor->count);
        step(kernels, sections, gradient, *tensor, first, last);
      }
      if (!summed) continue;
      after[unit] = state_sums(kernels, sections, unit);
      if (sections.parameters != nullptr) {
        after[unit].parameters = sum(kernels, sections.parameters, unit, sizeof(std::uint16_t));
      }
    }
    kernels.fence();
  });
  return {fold(before, shard_units, sections, false), fold(after, shard_units, sections, true)};
}

std::vector<std::uint32_t> section_digests(const Kernels& kernels, WorkPool& pool,
                                           const std::byte* section, std::size_t element_bytes,
                                           std::span<const std::size_t> shard_units) {
  const std::size_t units = std::accumulate(shard_units.begin(), shard_units.end(), std::size_t{0});
  std::vector<std::uint32_t> blocks(units);
  pool.run(units, [&](std::size_t begin, std::size_t end) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      blocks[unit] = sum(kernels, section, unit, element_bytes);
    }
  });
  std::vector<std::uint32_t> digests;
  std::size_t first = 0;
  for (const std::size_t count : shard_units) {
    digests.push_back(crc32c(std::as_bytes(std::span(blocks).subspan(first, count))));
    first += count;
  }
  return digests;
}

}  // namespace catchment::optimizer
