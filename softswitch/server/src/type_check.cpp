#include "type_check.hpp"

#include <map>
#include <string>

#include "rpc_error.hpp"

namespace catchment::server {

namespace {

using p4::config::v1::P4BitstringLikeTypeSpec;
using p4::config::v1::P4DataTypeSpec;
using p4::config::v1::P4TypeInfo;

constexpr std::uint64_t kMostParts = 4096;
constexpr unsigned kDeepest = 64;

// Counts the parts of types, those in their parts included.
class Parts {
 public:
  explicit Parts(const P4TypeInfo& types) : types_(types) {}

  void count_all() {
    for (const auto& [name, type] : types_.structs()) {
      of_struct(name);
    }
    for (const auto& [name, type] : types_.new_types()) {
      of_new_type(name);
    }
  }

 private:
  std::uint64_t of(const P4DataTypeSpec& type) {
    switch (type.type_spec_case()) {
      case P4DataTypeSpec::kStruct:
        return of_struct(type.struct_().name());
      case P4DataTypeSpec::kNewType:
        return of_new_type(type.new_type().name());
      case P4DataTypeSpec::kTuple: {
        std::uint64_t parts = 1;
        for (const auto& member : type.tuple().members()) {
          parts += of(member);
        }
        return parts;
      }
      default:
        return 1;
    }
  }

  std::uint64_t of_struct(const std::string& name) {
    const auto found = types_.structs().find(name);
    if (found == types_.structs().end()) {
      return 1;  // an error where it is used
    }
    return named("struct '" + name + "'", [&] {
      std::uint64_t parts = 1;
      for (const auto& member : found->second.members()) {
        parts += of(member.type_spec());
      }
      return parts;
    });
  }

  std::uint64_t of_new_type(const std::string& name) {
    const auto found = types_.new_types().find(name);
    if (found == types_.new_types().end() || !found->second.has_original_type()) {
      return 1;
    }
    return named("type '" + name + "'", [&] { return of(found->second.original_type()); });
  }

  template <class Count>
  std::uint64_t named(const std::string& what, Count count) {
    if (const auto known = known_.find(what); known != known_.end()) {
      if (known->second == 0) {
        throw invalid_argument("P4Info: " + what + " contains itself");
      }
      return known->second;
    }
    if (++depth_ > kDeepest) {
      throw invalid_argument("P4Info: " + what + " lies in more than " + std::to_string(kDeepest) +
                             " other types");
    }
    known_[what] = 0;
    const std::uint64_t parts = count();
    if (parts > kMostParts) {
      throw invalid_argument("P4Info: " + what + " has more than " + std::to_string(kMostParts) +
                             " parts");
    }
    --depth_;
    return known_[what] = parts;
  }

  const P4TypeInfo& types_;
  std::map<std::string, std::uint64_t> known_;  // 0: being counted
  unsigned depth_ = 0;
};

std::optional<std::uint64_t> bits_of(const P4BitstringLikeTypeSpec& type) {
  if (type.has_bit()) {
    return type.bit().bitwidth();
  }
  if (type.has_int_()) {
    return type.int_().bitwidth();
  }
  return std::nullopt;
}

template <class Members, class Bits>
std::optional<std::uint64_t> sum(const Members& members, Bits bits) {
  std::uint64_t all = 0;
  for (const auto& member : members) {
    const auto some = bits(member);
    if (!some) {
      return std::nullopt;
    }
    all += *some;
  }
  return all;
}

}  // namespace

void check_types(const P4TypeInfo& types) { Parts(types).count_all(); }

std::optional<std::uint64_t> bits_of(const P4DataTypeSpec& type, const P4TypeInfo& types) {
  switch (type.type_spec_case()) {
    case P4DataTypeSpec::kBitstring:
      return bits_of(type.bitstring());
    case P4DataTypeSpec::kBool:
      return 1;
    case P4DataTypeSpec::kTuple:
      return sum(type.tuple().members(),
                 [&](const auto& member) { return bits_of(member, types); });
    case P4DataTypeSpec::kStruct: {
      const auto found = types.structs().find(type.struct_().name());
      return found == types.structs().end() ? std::nullopt
                                            : sum(found->second.members(), [&](const auto& member) {
                                                return bits_of(member.type_spec(), types);
                                              });
    }
    case P4DataTypeSpec::kSerializableEnum: {
      const auto found = types.serializable_enums().find(type.serializable_enum().name());
      return found == types.serializable_enums().end()
                 ? std::nullopt
                 : std::optional<std::uint64_t>(found->second.underlying_type().bitwidth());
    }
    case P4DataTypeSpec::kNewType: {
      const auto found = types.new_types().find(type.new_type().name());
      return found == types.new_types().end() || !found->second.has_original_type()
                 ? std::nullopt
                 : bits_of(found->second.original_type(), types);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace catchment::server
