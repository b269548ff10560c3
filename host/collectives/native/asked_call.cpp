#include "asked_call.hpp"

#include "gathered_sums.hpp"

namespace catchment::host {

const char* wrong_with(const catchment_call& call, const Layout& layout, bool packed) {
  if (call.kind < CATCHMENT_ALL_REDUCE || call.kind > CATCHMENT_REFUSED) return "no such kind";
  if (call.reduction < CATCHMENT_SUM || call.reduction > CATCHMENT_MAX) return "no such reduction";
  if (call.type < CATCHMENT_BYTES || call.type > CATCHMENT_BF16) return "no such type";
  if (call.scaling < CATCHMENT_NONE || call.scaling > CATCHMENT_WHOLE) return "no such scaling";
  if (call.exponent < kLeastExponent || call.exponent > kMostExponent) {
    return "the exponent is not in -128..127";
  }
  if (call.root < 0 || call.root >= static_cast<std::int32_t>(layout.ranks)) {
    return "there is no such root";
  }
  if (call.elements > Signature::kMostElements) return "too many elements";
  const bool reduces = call.kind == CATCHMENT_ALL_REDUCE || call.kind == CATCHMENT_REDUCE ||
                       call.kind == CATCHMENT_REDUCE_SCATTER;
  if (reduces == (call.type == CATCHMENT_BYTES)) return "the type does not fit the kind";
  const bool floats = call.type >= CATCHMENT_FP32;
  if (call.reduction == CATCHMENT_MEAN && !floats) return "a mean is of floats";
  if ((floats && call.reduction != CATCHMENT_MAX) != (call.scaling != CATCHMENT_NONE)) {
    return "sums and means of floats, and nothing else, are scaled";
  }
  if (call.packed != 0 && call.scaling == CATCHMENT_NONE) {
    return "sums and means of floats, and nothing else, are packed";
  }
  if (call.packed != 0 && !packed) return "the job's stream has no packed lanes";
  if (call.kind == CATCHMENT_REDUCE_SCATTER && call.elements % layout.ranks != 0) {
    return "the elements are no multiple of the ranks";
  }
  if (call.blocks != 0) {
    const std::uint64_t scattered = call.kind == CATCHMENT_REDUCE_SCATTER ? layout.ranks : 1;
    const std::uint64_t part =
        call.elements / scattered * item_bytes(static_cast<wire::DataType>(call.type));
    if (call.kind != CATCHMENT_ALL_GATHER && call.kind != CATCHMENT_REDUCE_SCATTER) {
      return "only all_gather and reduce_scatter are strided";
    }
    if ((call.step | call.block | call.stride) % wire::kLaneBytes != 0) {
      return "strides are no whole words";
    }
    if (call.block > part || call.block * call.blocks != part) return "the blocks are no part";
  }
  const bool moves = call.kind != CATCHMENT_BARRIER && call.kind < CATCHMENT_BESIDE;
  const bool data = moves && call.elements != 0;
  if (data && (call.source == nullptr || call.target == nullptr)) return "an array is missing";
  return nullptr;
}

Call asked_by(const catchment_call& call) {
  Call asked;
  asked.signature = {.kind = static_cast<Kind>(call.kind),
                     .reduction = static_cast<Reduction>(call.reduction),
                     .type = static_cast<catchment::wire::DataType>(call.type),
                     .scaling = static_cast<ScalingMode>(call.scaling),
                     .root = static_cast<std::uint8_t>(call.root),
                     .exponent = static_cast<std::int8_t>(call.exponent),
                     .cancelled = false,
                     .packed = call.packed != 0,
                     .elements = call.elements,
                     .tag = call.tag};
  // Words need no scale.
  const bool few = call.elements * item_bytes(asked.signature.type) <= kGatheredBytes;
  const bool bits_of_array = asked.signature.scaling == ScalingMode::kWhole;  // whatever its length
  if (negotiates(asked.signature.scaling) && few && !bits_of_array) {
    asked.signature.scaling = ScalingMode::kNone;
    asked.signature.exponent = 0;
  }
  if (call.blocks != 0 && call.block != 0) {
    asked.spread = {call.step, call.block, call.blocks, call.stride};
    const std::uint32_t hash = asked.spread->hash();
    asked.signature.root = static_cast<std::uint8_t>(1 + hash % 255);
    asked.signature.tag ^= hash;
  }
  asked.source = static_cast<const std::uint8_t*>(call.source);
  asked.target = static_cast<std::uint8_t*>(call.target);
  asked.priority = call.priority;
  asked.timeout = call.timeout_ns;
  return asked;
}

}  // namespace catchment::host
