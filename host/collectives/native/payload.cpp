#include "payload.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "elementwise.hpp"
#include "gathered_sums.hpp"
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

// The lanes, counted over the whole operation, that vector `index` carries.
Range covered(const Operation& operation, std::uint32_t index, const Layout& layout) {
  const std::uint64_t first = static_cast<std::uint64_t>(index) * layout.lanes;
  return {first, std::min(first + layout.lanes, operation.lanes)};
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
    mean(lanes, count, scale.exponent, layout.headroom, layout.ranks, signature.type, target);
  } else {
    dequantize(lanes, count, scale.exponent, layout.headroom, signature.type, target);
  }
}

// The part of vector `index`, counted over the whole operation, that this rank's result has, and
// where it goes.
struct Part {
  Range lanes;
  std::uint8_t* target = nullptr;
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
  return {wanted, operation.call.target + (wanted.first - start) * item_bytes(signature.type)};
}

}  // namespace

Layout riding(const Layout& layout) {
  Layout rest = layout;
  rest.lanes -= static_cast<std::uint32_t>(all_signature_lanes(layout.lanes, layout.ranks));
  return rest;
}

bool passes_words(const Signature& signature) {
  return signature.kind == Kind::kBroadcast || signature.kind == Kind::kAllGather ||
         signature.reduction == Reduction::kMax || sums_words(signature);
}

bool sums_words(const Signature& signature) {
  const bool reduces = signature.kind == Kind::kAllReduce || signature.kind == Kind::kReduce ||
                       signature.kind == Kind::kReduceScatter;
  return reduces && is_float(signature.type) && signature.scaling == ScalingMode::kNone &&
         signature.reduction != Reduction::kMax;
}

std::uint64_t lanes_of(const Signature& signature, const Layout& layout) {
  if (signature.kind == Kind::kBarrier || signature.kind == Kind::kBeside ||
      signature.kind == Kind::kRefused) {
    return 0;
  }
  if (gathers(signature)) return words_of(bytes_of(signature)) * layout.ranks;
  if (signature.kind == Kind::kBroadcast) return words_of(bytes_of(signature));
  return signature.elements;
}

Cut fill(const Operation& operation, std::uint32_t index, Scale scale, const Layout& layout,
         std::uint8_t* payload) {
  const Signature& signature = operation.call.signature;
  const std::uint8_t* const source = operation.call.source;
  const Range lanes = covered(operation, index, layout);
  const std::uint64_t payload_bytes = static_cast<std::uint64_t>(layout.lanes) * kLaneBytes;
  if (!passes_words(signature)) {
    const std::uint8_t* const from = source + lanes.first * item_bytes(signature.type);
    Cut cut;
    if (scale.marked) {
      cut.nonfinite = quantize_marked(signature.type, from, lanes.size(), scale.exponent,
                                      layout.ranks, payload);
    } else {
      cut = quantize(signature.type, from, lanes.size(), scale.exponent, layout.headroom, payload);
    }
    std::memset(payload + lanes.size() * kLaneBytes, 0, payload_bytes - lanes.size() * kLaneBytes);
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
  words_to_lanes(source, bytes, {own.first - start, own.last - start},
                 payload + (own.first - lanes.first) * kLaneBytes);
  return {};
}

Scale scale_of(const Operation& operation, std::uint32_t index, const Layout& layout) {
  const Signature& signature = operation.call.signature;
  const Range lanes = covered(operation, index, layout);
  Scale scale =
      scale_of(signature.type, operation.call.source + lanes.first * item_bytes(signature.type),
               lanes.size());
  if (signature.scaling == ScalingMode::kWhole) scale.exponent = operation.whole;
  return scale;
}

void spoil(Operation& operation, std::uint32_t index, const Layout& layout) {
  const Part part = part_of_result(operation, index, layout);
  if (part.lanes.empty()) return;
  fill_nan(operation.call.signature.type, part.lanes.size(), part.target);
}

void place(Operation& operation, std::uint32_t index, Scale scale, const Layout& layout,
           const std::uint8_t* payload) {
  const Signature& signature = operation.call.signature;
  const Range lanes = covered(operation, index, layout);
  if (!passes_words(signature)) {
    const Part part = part_of_result(operation, index, layout);
    if (part.lanes.empty()) return;
    to_elements(signature, payload + (part.lanes.first - lanes.first) * kLaneBytes,
                part.lanes.size(), scale, layout, part.target);
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
  std::uint8_t* const target =
      signature.kind == Kind::kAllGather ? operation.call.target : operation.gathered.data();
  for (std::uint64_t rank = lanes.first / words; rank * words < lanes.last; ++rank) {
    const Range part = overlap(lanes, {rank * words, (rank + 1) * words});
    lanes_to_words(payload + (part.first - lanes.first) * kLaneBytes,
                   {part.first - rank * words, part.last - rank * words}, target + rank * bytes,
                   bytes);
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
  const std::uint8_t* const start = operation.gathered.data() + first * item_bytes(signature.type);
  if (signature.reduction != Reduction::kMax) {
    add_gathered(signature.type, start, bytes, layout.ranks, count, divisor_of(signature, layout),
                 operation.call.target);
    return;
  }
  std::memcpy(operation.call.target, start, count * item_bytes(signature.type));
  for (std::uint32_t rank = 1; rank < layout.ranks; ++rank) {
    maximum(signature.type, start + rank * bytes, count, operation.call.target);
  }
}

}  // namespace catchment::host
