#include "payload.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "catchment/common/fetch.hpp"
#include "elementwise.hpp"
#include "gathered_sums.hpp"
#include "lane_format.hpp"
#include "marked_vectors.hpp"

namespace catchment::host {
namespace {

using wire::DataType;
using wire::kLaneBytes;

constexpr std::uint64_t words_of(std::uint64_t bytes) { return (bytes + 3) / 4; }

struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  std::uint64_t size() const { return last - first; }
  bool empty() const { return first >= last; }
};

Range overlap(Range a, Range b) { return {std::max(a.first, b.first), std::min(a.last, b.last)}; }

// The words or elements, counted over the whole operation, that vector `index` carries.
Range covered(const Operation& operation, std::uint32_t index, const Layout& layout) {
  const Signature& signature = operation.call.signature;
  const std::uint64_t in_vector = std::uint64_t{layout.lanes} * elements_in_lane(signature);
  const std::uint64_t all = passes_words(signature) ? operation.lanes : signature.elements;
  const std::uint64_t first = index * in_vector;
  return {first, std::min(first + in_vector, all)};
}

LaneFormat format_of(const Signature& signature, const Layout& layout) {
  return {packs(signature), layout.ranks};
}

std::uint64_t bytes_of(const Signature& signature) {
  return signature.elements * item_bytes(signature.type);
}

// Words [words.first, words.last) of an array of `bytes` bytes, its last word padded with zeros.
void words_to_lanes(const std::uint8_t* array, std::uint64_t bytes, Range words,
                    std::uint8_t* lanes) {
  const std::uint64_t whole = std::min(words.last, bytes / 4);
  std::uint64_t count = 0;
  if (whole > words.first) {
    count = whole - words.first;
    quantize(DataType::kINT32, array + words.first * 4, count, 0, 0, lanes);
  }
  if (words.first + count == words.last) return;
  std::array<std::uint8_t, 4> tail{};
  std::memcpy(tail.data(), array + bytes / 4 * 4, bytes % 4);
  quantize(DataType::kINT32, tail.data(), 1, 0, 0, lanes + count * kLaneBytes);
}

void lanes_to_words(const std::uint8_t* lanes, Range words, std::uint8_t* array,
                    std::uint64_t bytes) {
  const std::uint64_t whole = std::min(words.last, bytes / 4);
  std::uint64_t count = 0;
  if (whole > words.first) {
    count = whole - words.first;
    dequantize(lanes, count, 0, 0, DataType::kINT32, array + words.first * 4);
  }
  if (words.first + count == words.last) return;
  std::array<std::uint8_t, 4> tail{};
  dequantize(lanes + count * kLaneBytes, 1, 0, 0, DataType::kINT32, tail.data());
  std::memcpy(array + bytes / 4 * 4, tail.data(), bytes % 4);
}

bool gathers(const Signature& signature) {
  return signature.kind == Kind::kAllGather ||
         (passes_words(signature) && signature.kind != Kind::kBroadcast);
}

// Elements of each rank's part of the result.
std::uint64_t part_of(const Signature& signature, const Layout& layout) {
  return signature.elements / layout.ranks;
}

std::uint32_t divisor_of(const Signature& signature, const Layout& layout) {
  return signature.reduction == Reduction::kMean ? layout.ranks : 1;
}

void to_elements(const Signature& signature, const std::uint8_t* lanes, std::size_t count,
                 Scale scale, const Layout& layout, std::uint8_t* target) {
  if (scale.marked) {
    dequantize_marked(lanes, count, scale.exponent, layout.ranks, divisor_of(signature, layout),
                      signature.type, target);
  } else if (signature.reduction == Reduction::kMean) {
    mean(format_of(signature, layout), lanes, count, scale.exponent, layout.ranks, signature.type,
         target);
  } else {
    format_of(signature, layout).dequantize(lanes, count, scale.exponent, signature.type, target);
  }
}

// Where the ranks' parts of a gather's result or of a scattered source lie; of other operations all
// is one part.
Spread spread_of(const Call& call, std::uint64_t part) {
  return call.spread.value_or(Spread::side_by_side(part));
}

Spread spread_of_source(const Call& call) {
  return spread_of(call, std::max<std::uint64_t>(1, bytes_of(call.signature)));
}

// Whether the one array of an operation has strided parts, and both source and target are it.
bool in_place(const Call& call) { return call.spread && call.target == call.source; }

// Bytes of this rank's result that lie together, `at` bytes into it, when [first, last) of its
// bytes are written.
template <typename Run>
void for_each_run_of_result(const Call& call, std::uint64_t first, std::uint64_t last,
                            const Layout& layout, Run&& run) {
  if (!in_place(call)) return run(call.target + first, first, last - first);
  const std::uint64_t start = layout.rank * call.spread->part();
  call.spread->for_each_run(start + first, start + last,
                            [&](std::uint64_t place, std::uint64_t at, std::uint64_t count) {
                              run(call.target + place, at - start, count);
                            });
}

// The part of vector `index`, counted over the whole operation, that this rank's result has, and
// its first byte in it.
struct Part {
  Range lanes;
  std::uint64_t first = 0;
};

Part part_of_result(const Operation& operation, std::uint32_t index, const Layout& layout) {
  const Signature& signature = operation.call.signature;
  const Range lanes = covered(operation, index, layout);
  if (signature.kind == Kind::kReduce && layout.rank != signature.root) return {};
  std::uint64_t start = 0;
  Range wanted = lanes;
  if (signature.kind == Kind::kReduceScatter) {
    const std::uint64_t part = part_of(signature, layout);
    start = layout.rank * part;
    wanted = overlap(lanes, {start, start + part});
    if (wanted.empty()) return {};
  }
  return {wanted, (wanted.first - start) * item_bytes(signature.type)};
}

// This rank's elements of lanes [lanes.first, lanes.last): `run(source, lane, count)` for each run
// of them that lie together.
template <typename Run>
void for_each_run_of_lanes(const Call& call, Range lanes, Run&& run) {
  if (lanes.empty()) return;
  const std::uint64_t item = item_bytes(call.signature.type);
  if (!call.spread) return run(call.source + lanes.first * item, lanes.first, lanes.size());
  call.spread->for_each_run(lanes.first * item, lanes.last * item,
                            [&](std::uint64_t place, std::uint64_t at, std::uint64_t count) {
                              run(call.source + place, at / item, count / item);
                            });
}

// Arrays of more bytes do not stay in the caches between one vector's turn and the next look at it.
constexpr std::uint64_t kBeyondCaches = std::uint64_t{4} << 20;

// Asks for the elements of the vector behind `index`, for a look through all vectors of a large
// array.
[[gnu::always_inline]] inline void fetch_next(const Operation& operation, std::uint32_t index,
                                              const Layout& layout) {
  const Call& call = operation.call;
  if (call.spread || bytes_of(call.signature) <= kBeyondCaches) return;
  const Range next = covered(operation, index + 1, layout);
  const std::uint64_t item = item_bytes(call.signature.type);
  if (!next.empty()) fetch(call.source + next.first * item, next.size() * item);
}

Scale scale_of_lanes(const Call& call, Range lanes) {
  Scale scale;
  for_each_run_of_lanes(call, lanes,
                        [&](const std::uint8_t* from, std::uint64_t, std::uint64_t count) {
                          const Scale run = scale_of(call.signature.type, from, count);
                          scale.exponent = std::max(scale.exponent, run.exponent);
                          scale.marked = scale.marked || run.marked;
                        });
  return scale;
}

}  // namespace

Layout riding(const Layout& layout) {
  Layout rest = layout;
  rest.lanes -= static_cast<std::uint32_t>(all_signature_lanes(layout.lanes, layout.ranks));
  return rest;
}

std::uint64_t lanes_of(const Signature& signature, const Layout& layout) {
  if (signature.kind == Kind::kBarrier || signature.kind == Kind::kBeside ||
      signature.kind == Kind::kRefused) {
    return 0;
  }
  if (gathers(signature)) return words_of(bytes_of(signature)) * layout.ranks;
  if (signature.kind == Kind::kBroadcast) return words_of(bytes_of(signature));
  const std::uint64_t in_lane = elements_in_lane(signature);
  return (signature.elements + in_lane - 1) / in_lane;
}

Cut fill(const Operation& operation, std::uint32_t index, Scale scale, const Layout& layout,
         std::uint8_t* payload) {
  const Signature& signature = operation.call.signature;
  const Call& call = operation.call;
  const Range lanes = covered(operation, index, layout);
  const std::uint64_t payload_bytes = static_cast<std::uint64_t>(layout.lanes) * kLaneBytes;
  if (!passes_words(signature)) {
    fetch_next(operation, index, layout);
    const LaneFormat format = format_of(signature, layout);
    const bool spoilt = scale.marked && packs(signature);
    Cut cut;
    for_each_run_of_lanes(
        call, lanes, [&](const std::uint8_t* from, std::uint64_t element, std::uint64_t count) {
          std::uint8_t* const to = payload + (element - lanes.first) * format.item_bytes();
          Cut run;
          if (spoilt) {
            run.nonfinite = count_nonfinite(signature.type, from, count);
          } else if (scale.marked) {
            run.nonfinite =
                quantize_marked(signature.type, from, count, scale.exponent, layout.ranks, to);
          } else {
            run = format.quantize(signature.type, from, count, scale.exponent, to);
          }
          cut.saturated += run.saturated;
          cut.nonfinite += run.nonfinite;
        });
    const std::uint64_t used = spoilt ? 0 : lanes.size() * format.item_bytes();
    std::memset(payload + used, 0, payload_bytes - used);
    return cut;
  }
  std::memset(payload, 0, payload_bytes);
  const std::uint64_t bytes = bytes_of(signature);
  const std::uint64_t words = words_of(bytes);
  const bool gather = gathers(signature);
  if (!gather && layout.rank != signature.root) return {};
  const std::uint64_t start = gather ? layout.rank * words : 0;
  const Range own = overlap(lanes, {start, start + words});
  if (own.empty()) return {};
  const Range wanted{(own.first - start) * kLaneBytes,
                     std::min((own.last - start) * kLaneBytes, bytes)};
  const bool gathers_parts = signature.kind == Kind::kAllGather;
  // All of a gather's source is this rank's part.
  const std::uint64_t part = gathers_parts && in_place(call) ? layout.rank * bytes : 0;
  const Spread spread =
      gathers_parts && !in_place(call) ? Spread::side_by_side(bytes) : spread_of_source(call);
  spread.for_each_run(part + wanted.first, part + wanted.last,
                      [&](std::uint64_t place, std::uint64_t at, std::uint64_t count) {
                        const std::uint64_t word = start + (at - part) / kLaneBytes;
                        words_to_lanes(call.source + place, count, {0, words_of(count)},
                                       payload + (word - lanes.first) * kLaneBytes);
                      });
  return {};
}

Scale scale_of(const Call& call) { return scale_of_lanes(call, {0, call.signature.elements}); }

std::uint32_t count_nonfinite(const Call& call) {
  std::uint32_t found = 0;
  for_each_run_of_lanes(call, {0, call.signature.elements},
                        [&](const std::uint8_t* from, std::uint64_t, std::uint64_t count) {
                          found += count_nonfinite(call.signature.type, from, count);
                        });
  return found;
}

Scale scale_of(const Operation& operation, std::uint32_t index, const Layout& layout) {
  const Signature& signature = operation.call.signature;
  const Range lanes = covered(operation, index, layout);
  fetch_next(operation, index, layout);
  Scale scale = scale_of_lanes(operation.call, lanes);
  if (signature.scaling == ScalingMode::kWhole) scale.exponent = operation.whole;
  return scale;
}

void spoil(Operation& operation, std::uint32_t index, const Layout& layout) {
  const Part part = part_of_result(operation, index, layout);
  if (part.lanes.empty()) return;
  const wire::DataType type = operation.call.signature.type;
  for_each_run_of_result(operation.call, part.first,
                         part.first + part.lanes.size() * item_bytes(type), layout,
                         [type](std::uint8_t* target, std::uint64_t, std::uint64_t count) {
                           fill_nan(type, count / item_bytes(type), target);
                         });
}

void place(Operation& operation, std::uint32_t index, Scale scale, const Layout& layout,
           const std::uint8_t* payload) {
  const Signature& signature = operation.call.signature;
  const Range lanes = covered(operation, index, layout);
  if (!passes_words(signature)) {
    const Part part = part_of_result(operation, index, layout);
    if (part.lanes.empty()) return;
    const std::uint64_t sum_bytes = format_of(signature, layout).item_bytes();
    const std::uint8_t* const from = payload + (part.lanes.first - lanes.first) * sum_bytes;
    const std::uint64_t item = item_bytes(signature.type);
    for_each_run_of_result(operation.call, part.first, part.first + part.lanes.size() * item,
                           layout,
                           [&](std::uint8_t* target, std::uint64_t at, std::uint64_t count) {
                             to_elements(signature, from + (at - part.first) / item * sum_bytes,
                                         count / item, scale, layout, target);
                           });
    return;
  }
  const std::uint64_t bytes = bytes_of(signature);
  const std::uint64_t words = words_of(bytes);
  if (!gathers(signature)) {
    if (layout.rank != signature.root) {
      lanes_to_words(payload, lanes, operation.call.target, bytes);
    }
    return;
  }
  const bool gather = signature.kind == Kind::kAllGather;
  std::uint8_t* const target = gather ? operation.call.target : operation.gathered.data();
  const Spread spread = gather ? spread_of(operation.call, bytes) : Spread::side_by_side(bytes);
  for (std::uint64_t rank = lanes.first / words; rank * words < lanes.last; ++rank) {
    const Range part = overlap(lanes, {rank * words, (rank + 1) * words});
    const Range wanted{
        rank * bytes + (part.first - rank * words) * kLaneBytes,
        std::min(rank * bytes + (part.last - rank * words) * kLaneBytes, (rank + 1) * bytes)};
    spread.for_each_run(
        wanted.first, wanted.last, [&](std::uint64_t place, std::uint64_t at, std::uint64_t count) {
          const std::uint64_t word = rank * words + (at - rank * bytes) / kLaneBytes;
          lanes_to_words(payload + (word - lanes.first) * kLaneBytes, {0, words_of(count)},
                         target + place, count);
        });
  }
}

void finish(Operation& operation, const Layout& layout) {
  const Signature& signature = operation.call.signature;
  const bool gathered = signature.reduction == Reduction::kMax || sums_words(signature);
  if (!gathered || signature.elements == 0) return;
  if (signature.kind == Kind::kReduce && layout.rank != signature.root) return;
  const std::uint64_t bytes = bytes_of(signature);
  std::uint64_t first = 0;
  std::uint64_t count = signature.elements;
  if (signature.kind == Kind::kReduceScatter) {
    count = part_of(signature, layout);
    first = layout.rank * count;
  }
  const std::uint64_t item = item_bytes(signature.type);
  const std::uint8_t* const start = operation.gathered.data() + first * item;
  for_each_run_of_result(operation.call, 0, count * item, layout,
                         [&](std::uint8_t* target, std::uint64_t at, std::uint64_t length) {
                           if (signature.reduction != Reduction::kMax) {
                             add_gathered(signature.type, start + at, bytes, layout.ranks,
                                          length / item, divisor_of(signature, layout), target);
                             return;
                           }
                           std::memcpy(target, start + at, length);
                           for (std::uint32_t rank = 1; rank < layout.ranks; ++rank) {
                             maximum(signature.type, start + at + rank * bytes, length / item,
                                     target);
                           }
                         });
}

}  // namespace catchment::host
