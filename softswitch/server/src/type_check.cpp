#include "type_check.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "rpc_error.hpp"

namespace catchment::server {

namespace {

using p4::config::v1::P4BitstringLikeTypeSpec;
using p4::config::v1::P4DataTypeSpec;
using p4::config::v1::P4HeaderTypeSpec;
using p4::config::v1::P4HeaderUnionTypeSpec;
using p4::config::v1::P4NewTypeSpec;
using p4::config::v1::P4StructTypeSpec;
using p4::config::v1::P4TypeInfo;

constexpr std::uint64_t kMostParts = 4096;
constexpr std::int32_t kMostBits = 1 << 16;
constexpr unsigned kMostLevels = 64;

RpcError wrong(const std::string& what) { return invalid_argument("P4Info: " + what); }

std::int32_t width_of(const P4BitstringLikeTypeSpec& type) {
  switch (type.type_spec_case()) {
    case P4BitstringLikeTypeSpec::kBit:
      return type.bit().bitwidth();
    case P4BitstringLikeTypeSpec::kInt:
      return type.int_().bitwidth();
    default:
      return type.varbit().max_bitwidth();
  }
}

// Of a type and all that is in it. A level that is 0 is still being counted.
struct Extent {
  std::uint64_t parts = 1;
  unsigned levels = 1;
};

class Extents {
 public:
  explicit Extents(const P4TypeInfo& types) : types_(types) {}

  void count_declared() {
    for (const auto& [name, type] : types_.structs()) {
      of(type, name);
    }
    for (const auto& [name, type] : types_.headers()) {
      of(type, name);
    }
    for (const auto& [name, type] : types_.header_unions()) {
      of(type, name);
    }
    for (const auto& [name, type] : types_.new_types()) {
      of(type, name);
    }
    for (const auto& [name, type] : types_.serializable_enums()) {
      check_bits(type.underlying_type().bitwidth(), "enum '" + name + "'");
    }
  }

  Extent of(const P4DataTypeSpec& type, const std::string& owner) {
    check_levels(++depth_, owner);  // a type in a type in ... is not known before its end
    const Extent extent = below(type, owner);
    --depth_;
    return extent;
  }

 private:
  static void check_levels(unsigned levels, const std::string& owner) {
    if (levels > kMostLevels) {
      throw wrong(owner + " has types in it that lie in more than " + std::to_string(kMostLevels) +
                  " others");
    }
  }

  static void check_bits(std::int32_t bits, const std::string& owner) {
    if (bits < 0 || bits > kMostBits) {
      throw wrong(owner + " has " + std::to_string(bits) + " bits; at most " +
                  std::to_string(kMostBits) + " are taken");
    }
  }

  template <class Map>
  static const auto& declared(const Map& map, const std::string& name, const std::string& owner) {
    const auto found = map.find(name);
    if (found == map.end()) {
      throw wrong("type '" + name + "' of " + owner + " is not in type_info");
    }
    return found->second;
  }

  template <class Map>
  Extent of_declared(const Map& map, const std::string& name, const std::string& owner) {
    return of(declared(map, name, owner), name);
  }

  Extent below(const P4DataTypeSpec& type, const std::string& owner) {
    switch (type.type_spec_case()) {
      case P4DataTypeSpec::kBitstring:
        check_bits(width_of(type.bitstring()), owner);
        return {};
      case P4DataTypeSpec::kTuple:
        return sum(type.tuple().members(), owner,
                   [&](const auto& member) { return of(member, owner); });
      case P4DataTypeSpec::kStruct:
        return of_declared(types_.structs(), type.struct_().name(), owner);
      case P4DataTypeSpec::kHeader:
        return of_declared(types_.headers(), type.header().name(), owner);
      case P4DataTypeSpec::kHeaderUnion:
        return of_declared(types_.header_unions(), type.header_union().name(), owner);
      case P4DataTypeSpec::kHeaderStack:
        return of_declared(types_.headers(), type.header_stack().header().name(), owner);
      case P4DataTypeSpec::kHeaderUnionStack:
        return of_declared(types_.header_unions(), type.header_union_stack().header_union().name(),
                           owner);
      case P4DataTypeSpec::kNewType:
        return of_declared(types_.new_types(), type.new_type().name(), owner);
      case P4DataTypeSpec::kSerializableEnum:
        declared(types_.serializable_enums(), type.serializable_enum().name(), owner);
        return {};
      case P4DataTypeSpec::kEnum:
        declared(types_.enums(), type.enum_().name(), owner);
        return {};
      default:
        return {};
    }
  }

  template <class Members, class Count>
  static Extent sum(const Members& members, const std::string& owner, Count count) {
    Extent all;
    for (const auto& member : members) {
      const Extent one = count(member);
      all.parts += one.parts;
      all.levels = std::max(all.levels, one.levels + 1);
      if (all.parts > kMostParts) {
        throw wrong(owner + " has more than " + std::to_string(kMostParts) + " parts");
      }
      check_levels(all.levels, owner);
    }
    return all;
  }

  Extent of(const P4StructTypeSpec& type, const std::string& name) {
    const std::string owner = "struct '" + name + "'";
    return named(owner, [&] {
      return sum(type.members(), owner,
                 [&](const auto& member) { return of(member.type_spec(), owner); });
    });
  }

  Extent of(const P4HeaderTypeSpec& type, const std::string& name) {
    const std::string owner = "header '" + name + "'";
    return named(owner, [&] {
      return sum(type.members(), owner, [&](const auto& member) {
        check_bits(width_of(member.type_spec()), owner);
        return Extent{};
      });
    });
  }

  Extent of(const P4HeaderUnionTypeSpec& type, const std::string& name) {
    const std::string owner = "header union '" + name + "'";
    return named(owner, [&] {
      return sum(type.members(), owner, [&](const auto& member) {
        return of_declared(types_.headers(), member.header().name(), owner);
      });
    });
  }

  Extent of(const P4NewTypeSpec& type, const std::string& name) {
    const std::string owner = "type '" + name + "'";
    return named(owner, [&] {
      Extent extent;
      if (type.has_original_type()) {
        extent = of(type.original_type(), owner);
        check_levels(++extent.levels, owner);
      }
      return extent;
    });
  }

  template <class Count>
  Extent named(const std::string& owner, Count count) {
    const auto [known, is_new] = known_.try_emplace(owner, Extent{0, 0});
    if (is_new) {
      known->second = count();
    } else if (known->second.levels == 0) {
      throw wrong(owner + " contains itself");
    }
    return known->second;
  }

  const P4TypeInfo& types_;
  std::map<std::string, Extent> known_;
  unsigned depth_ = 0;
};

void add_widths(const P4DataTypeSpec& type, const P4TypeInfo& types,
                std::vector<std::optional<std::uint32_t>>& widths) {
  const auto add = [&](std::int32_t bits) {
    widths.emplace_back(static_cast<std::uint32_t>(bits));
  };
  switch (type.type_spec_case()) {
    case P4DataTypeSpec::kBitstring:
      return add(width_of(type.bitstring()));
    case P4DataTypeSpec::kBool:
      return add(1);
    case P4DataTypeSpec::kTuple:
      for (const auto& member : type.tuple().members()) {
        add_widths(member, types, widths);
      }
      return;
    case P4DataTypeSpec::kStruct:
      for (const auto& member : types.structs().at(type.struct_().name()).members()) {
        add_widths(member.type_spec(), types, widths);
      }
      return;
    case P4DataTypeSpec::kHeader:
      for (const auto& member : types.headers().at(type.header().name()).members()) {
        add(width_of(member.type_spec()));
      }
      return;
    case P4DataTypeSpec::kSerializableEnum:
      return add(types.serializable_enums()
                     .at(type.serializable_enum().name())
                     .underlying_type()
                     .bitwidth());
    case P4DataTypeSpec::kNewType: {
      const auto& declared = types.new_types().at(type.new_type().name());
      if (declared.has_original_type()) {
        return add_widths(declared.original_type(), types, widths);
      }
      break;
    }
    default:
      break;
  }
  widths.emplace_back();
}

}  // namespace

void check_types(const p4::config::v1::P4Info& info) {
  Extents extents(info.type_info());
  extents.count_declared();
  for (const auto& one : info.registers()) {
    extents.of(one.type_spec(), "register '" + one.preamble().name() + "'");
  }
  for (const auto& one : info.digests()) {
    extents.of(one.type_spec(), "digest '" + one.preamble().name() + "'");
  }
}

std::vector<std::optional<std::uint32_t>> scalar_widths(const P4DataTypeSpec& type,
                                                        const P4TypeInfo& types) {
  std::vector<std::optional<std::uint32_t>> widths;
  add_widths(type, types, widths);
  return widths;
}

}  // namespace catchment::server
