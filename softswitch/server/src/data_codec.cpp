#include "data_codec.hpp"

#include <cstdint>

#include "bytestring.hpp"
#include "rpc_error.hpp"

namespace catchment::server {

namespace {

using p4::config::v1::P4BitstringLikeTypeSpec;
using p4::config::v1::P4DataTypeSpec;
using p4::config::v1::P4TypeInfo;
using p4::v1::P4Data;

template <class Map>
const auto& named(const Map& map, const std::string& name) {
  const auto found = map.find(name);
  if (found == map.end()) {
    throw invalid_argument("P4Info: type '" + name + "' is not in type_info");
  }
  return found->second;
}

// Follows `type` declarations down to what they are made of; of a translated one, to the bits that
// clients give and get, which are put into `bits`.
const P4DataTypeSpec& resolve(const P4DataTypeSpec& type, const P4TypeInfo& types,
                              P4DataTypeSpec& bits) {
  const P4DataTypeSpec* result = &type;
  while (result->type_spec_case() == P4DataTypeSpec::kNewType) {
    const auto& declared = named(types.new_types(), result->new_type().name());
    if (!declared.has_original_type()) {
      if (declared.translated_type().sdn_bitwidth() == 0) {
        throw unimplemented("type '" + result->new_type().name() +
                            "': values are strings (@p4runtime_translation), which this switch "
                            "does not translate");
      }
      bits.mutable_bitstring()->mutable_bit()->set_bitwidth(
          declared.translated_type().sdn_bitwidth());
      return bits;
    }
    result = &declared.original_type();
  }
  return *result;
}

void clear_above(std::string& fixed, unsigned width) {
  if (width % 8 != 0) {
    fixed.front() =
        static_cast<char>(static_cast<std::uint8_t>(fixed.front()) & ((1U << width % 8) - 1));
  }
}

std::string widened(const std::string& value, unsigned width) {
  const unsigned bytes = byte_width(width);
  return value.size() >= bytes ? value.substr(value.size() - bytes)
                               : std::string(bytes - value.size(), '\0') + value;
}

void require(bool right, const Where& where, const char* wanted) {
  if (!right) {
    throw invalid_argument(where.text() + ": its data must be given as " + wanted);
  }
}

const std::string& next(std::span<const std::string>& scalars) {
  if (scalars.empty()) {
    throw RpcError(grpc::StatusCode::INTERNAL, "the switch gave fewer values than the type has");
  }
  const std::string& value = scalars.front();
  scalars = scalars.subspan(1);
  return value;
}

std::string encode_bits(const std::string& value, const P4BitstringLikeTypeSpec& type) {
  if (type.has_int_()) {
    const auto width = static_cast<unsigned>(type.int_().bitwidth());
    return to_canonical_signed(widened(value, width), width);
  }
  return to_canonical(value);
}

template <class Members>
void encode_members(std::span<const std::string>& scalars, const Members& members,
                    const P4TypeInfo& types, p4::v1::P4StructLike& result) {
  for (const auto& member : members) {
    if constexpr (requires { member.type_spec(); }) {
      *result.add_members() = encode_data(scalars, member.type_spec(), types);
    } else {
      *result.add_members() = encode_data(scalars, member, types);
    }
  }
}

}  // namespace

std::string decode_scalar(const P4Data& data, const P4DataTypeSpec& type, const P4TypeInfo& types,
                          const Where& where) {
  P4DataTypeSpec bits;
  const P4DataTypeSpec& plain = resolve(type, types, bits);
  switch (plain.type_spec_case()) {
    case P4DataTypeSpec::kBitstring: {
      require(data.has_bitstring(), where, "a bitstring");
      if (plain.bitstring().has_bit()) {
        return to_fixed(data.bitstring(), static_cast<unsigned>(plain.bitstring().bit().bitwidth()),
                        where);
      }
      if (plain.bitstring().has_int_()) {
        const auto width = static_cast<unsigned>(plain.bitstring().int_().bitwidth());
        std::string value = to_fixed_signed(data.bitstring(), width, where);
        clear_above(value, width);
        return value;
      }
      break;
    }
    case P4DataTypeSpec::kBool:
      require(data.data_case() == P4Data::kBool, where, "a bool");
      return std::string(1, data.bool_() ? char{1} : char{0});
    case P4DataTypeSpec::kSerializableEnum: {
      require(data.data_case() == P4Data::kEnumValue, where, "an enum_value");
      const auto& declared = named(types.serializable_enums(), plain.serializable_enum().name());
      return to_fixed(data.enum_value(),
                      static_cast<unsigned>(declared.underlying_type().bitwidth()), where);
    }
    default:
      break;
  }
  throw unimplemented(where.text() + ": only bit, int, bool and serializable enum data");
}

P4Data encode_data(std::span<const std::string>& scalars, const P4DataTypeSpec& type,
                   const P4TypeInfo& types) {
  P4DataTypeSpec bits;
  const P4DataTypeSpec& plain = resolve(type, types, bits);
  P4Data result;
  switch (plain.type_spec_case()) {
    case P4DataTypeSpec::kBitstring:
      result.set_bitstring(encode_bits(next(scalars), plain.bitstring()));
      return result;
    case P4DataTypeSpec::kBool:
      result.set_bool_(to_canonical(next(scalars)) != std::string(1, '\0'));
      return result;
    case P4DataTypeSpec::kSerializableEnum:
      result.set_enum_value(to_canonical(next(scalars)));
      return result;
    case P4DataTypeSpec::kTuple:
      encode_members(scalars, plain.tuple().members(), types, *result.mutable_tuple());
      return result;
    case P4DataTypeSpec::kStruct:
      encode_members(scalars, named(types.structs(), plain.struct_().name()).members(), types,
                     *result.mutable_struct_());
      return result;
    case P4DataTypeSpec::kHeader: {
      auto& header = *result.mutable_header();
      header.set_is_valid(true);
      for (const auto& member : named(types.headers(), plain.header().name()).members()) {
        header.add_bitstrings(encode_bits(next(scalars), member.type_spec()));
      }
      return result;
    }
    default:
      throw unimplemented("data of this type cannot be sent to a client");
  }
}

}  // namespace catchment::server
