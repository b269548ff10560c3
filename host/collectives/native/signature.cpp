#include "signature.hpp"

#include <array>

namespace catchment::host {
namespace {

// Word 0, from the top: kind, reduction, type, scaling, cancelled, root, exponent, elements >> 32.
constexpr int kKindShift = 28;
constexpr int kReductionShift = 26;
constexpr int kTypeShift = 23;
constexpr int kScalingShift = 21;
constexpr int kCancelledShift = 20;
constexpr int kRootShift = 12;
constexpr int kExponentShift = 4;
// No room is left for a fifth scaling: this reduction says kWhole, and the field of the scaling
// then says which reduction it is.
constexpr std::uint32_t kWholeReduction = 3;
// Floats in packed lanes have types of their own, behind all others.
constexpr std::uint32_t kPackedTypes = 3;
constexpr std::uint32_t kMostType = 4 + kPackedTypes;

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "all_reduce";
    case Kind::kReduce:
      return "reduce";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kReduceScatter:
      return "reduce_scatter";
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kBeside:
      return "an operation beside the switch";
    case Kind::kRefused:
      return "an operation with arguments that are wrong";
  }
  return "unknown";
}

const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMean:
      return "mean";
    case Reduction::kMax:
      return "max";
  }
  return "unknown";
}

}  // namespace

std::string describe(const Signature& signature) {
  if (signature.kind == Kind::kRefused) return name_of(signature.kind);
  std::string text = name_of(signature.kind) + "(";
  const auto add = [&text](const std::string& part) {
    if (text.back() != '(') text += ", ";
    text += part;
  };
  if (signature.kind != Kind::kBarrier) {
    const bool raw = signature.type == wire::DataType::kBYTES;
    const char* const unit = signature.kind == Kind::kBeside ? " elements" : " bytes";
    add(std::to_string(signature.elements) +
        (raw ? unit : " x " + std::string(wire::name(signature.type))));
  }
  if (signature.kind == Kind::kAllReduce || signature.kind == Kind::kReduce ||
      signature.kind == Kind::kReduceScatter) {
    add(name_of(signature.reduction));
  }
  if (signature.kind == Kind::kReduce || signature.kind == Kind::kBroadcast) {
    add("root " + std::to_string(signature.root));
  }
  const bool scatters =
      signature.kind == Kind::kReduceScatter || signature.kind == Kind::kAllGather;
  const bool strided = scatters && signature.root != 0;
  if (strided) add("strided " + std::to_string(signature.root));
  if (signature.scaling == ScalingMode::kFixed) add("E " + std::to_string(signature.exponent));
  if (signature.scaling == ScalingMode::kDelayed) {
    add("E about " + std::to_string(signature.exponent));
  }
  if (signature.scaling == ScalingMode::kWhole) add("one E");
  if (signature.packed) add("packed lanes");
  if (signature.tag != 0 && !strided) add("tag " + std::to_string(signature.tag));
  return text + ")";
}

std::uint32_t read_lane(const std::uint8_t* payload, std::size_t lane) {
  const std::uint8_t* const p = payload + lane * wire::kLaneBytes;
  return static_cast<std::uint32_t>(p[0]) << 24 | static_cast<std::uint32_t>(p[1]) << 16 |
         static_cast<std::uint32_t>(p[2]) << 8 | static_cast<std::uint32_t>(p[3]);
}

void write_lane(std::uint8_t* payload, std::size_t lane, std::uint32_t value) {
  std::uint8_t* const p = payload + lane * wire::kLaneBytes;
  p[0] = static_cast<std::uint8_t>(value >> 24);
  p[1] = static_cast<std::uint8_t>(value >> 16);
  p[2] = static_cast<std::uint8_t>(value >> 8);
  p[3] = static_cast<std::uint8_t>(value);
}

void write_signature(const Signature& s, std::size_t rank, std::size_t ranks, std::size_t lanes,
                     std::uint8_t* payload) {
  const std::size_t width = signature_lanes(lanes, ranks);
  const auto word = [](auto value, int shift) {
    return static_cast<std::uint32_t>(static_cast<std::uint8_t>(value)) << shift;
  };
  const bool whole = s.scaling == ScalingMode::kWhole;
  const std::uint32_t reduction =
      whole ? kWholeReduction << kReductionShift | word(s.reduction, kScalingShift)
            : word(s.reduction, kReductionShift) | word(s.scaling, kScalingShift);
  const std::uint32_t type = static_cast<std::uint32_t>(s.type) + (s.packed ? kPackedTypes : 0);
  const std::array<std::uint32_t, 3> words = {
      word(s.kind, kKindShift) | reduction | type << kTypeShift |
          word(s.cancelled, kCancelledShift) | word(s.root, kRootShift) |
          word(s.exponent, kExponentShift) | (static_cast<std::uint32_t>(s.elements >> 32) & 0xfU),
      static_cast<std::uint32_t>(s.elements), s.tag};
  for (std::size_t i = 0; i < width; ++i) write_lane(payload, rank * width + i, words[i]);
}

std::optional<Signature> read_signature(const std::uint8_t* payload, std::size_t rank,
                                        std::size_t ranks, std::size_t lanes) {
  const std::size_t width = signature_lanes(lanes, ranks);
  const std::uint32_t head = read_lane(payload, rank * width);
  const auto field = [head](int shift, std::uint32_t mask) { return (head >> shift) & mask; };
  const std::uint32_t kind = field(kKindShift, 0xf);
  const bool whole = field(kReductionShift, 3) == kWholeReduction;
  const std::uint32_t reduction = field(whole ? kScalingShift : kReductionShift, 3);
  const std::uint32_t type = field(kTypeShift, 7);
  const std::uint32_t scaling =
      whole ? static_cast<std::uint32_t>(ScalingMode::kWhole) : field(kScalingShift, 3);
  if (kind < 1 || kind > 8 || reduction > 2 || type > kMostType) return std::nullopt;
  Signature s;
  s.kind = static_cast<Kind>(kind);
  s.reduction = static_cast<Reduction>(reduction);
  s.packed = type > kMostType - kPackedTypes;
  s.type = static_cast<wire::DataType>(s.packed ? type - kPackedTypes : type);
  s.scaling = static_cast<ScalingMode>(scaling);
  s.cancelled = field(kCancelledShift, 1) != 0;
  s.root = static_cast<std::uint8_t>(field(kRootShift, 0xff));
  s.exponent = static_cast<std::int8_t>(field(kExponentShift, 0xff));
  s.elements = static_cast<std::uint64_t>(head & 0xfU) << 32 | read_lane(payload, rank * width + 1);
  if (width >= 3) s.tag = read_lane(payload, rank * width + 2);
  return s;
}

}  // namespace catchment::host
