#include "program_check.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rpc_error.hpp"
#include "type_check.hpp"

namespace catchment::server {

namespace {

using p4config::MatchField;
using softswitch::MatchKind;

MatchField::MatchType type_of(MatchKind kind) {
  switch (kind) {
    case MatchKind::exact:
      return MatchField::EXACT;
    case MatchKind::lpm:
      return MatchField::LPM;
    case MatchKind::ternary:
      return MatchField::TERNARY;
    case MatchKind::range:
      return MatchField::RANGE;
    case MatchKind::optional:
      return MatchField::OPTIONAL;
  }
  return MatchField::UNSPECIFIED;
}

[[noreturn]] void differ(const std::string& what) {
  throw invalid_argument("the P4Info does not belong to this program: " + what);
}

template <class Info, class Preamble>
const Info& find(const std::vector<Info>& objects, const Preamble& preamble, const char* kind) {
  const auto found = std::find_if(objects.begin(), objects.end(),
                                  [&](const Info& object) { return object.id == preamble.id(); });
  if (found == objects.end()) {
    differ("the program has no " + std::string(kind) + " '" + preamble.name() + "' (id " +
           std::to_string(preamble.id()) + ")");
  }
  return *found;
}

// Whether clients give values of this type in another width than the program has
// (@p4runtime_translation).
bool is_translated(const p4config::P4NamedType& type, const Schema& schema) {
  const auto& types = schema.info().type_info().new_types();
  const auto found = types.find(type.name());
  return found != types.end() && found->second.has_translated_type();
}

template <class Fields>
void check_fields(const std::vector<softswitch::MatchFieldInfo>& program, const Fields& info,
                  const std::string& owner, const Schema& schema) {
  if (program.size() != static_cast<std::size_t>(info.size())) {
    differ(owner + " has another number of match fields");
  }
  for (const auto& field : info) {
    const auto found = std::find_if(program.begin(), program.end(), [&](const auto& candidate) {
      return candidate.id == field.id();
    });
    if (found == program.end() || type_of(found->kind) != field.match_type() ||
        (found->width != static_cast<std::uint32_t>(field.bitwidth()) &&
         !is_translated(field.type_name(), schema))) {
      differ(owner + ", match field '" + field.name() + "' has another width or match kind");
    }
  }
}

void check_tables(const Schema& schema, const softswitch::ProgramInfo& program) {
  for (const auto& table : schema.info().tables()) {
    const std::string owner = "table '" + table.preamble().name() + "'";
    const auto& compiled = find(program.tables, table.preamble(), "table");
    check_fields(compiled.fields, table.match_fields(), owner, schema);
    for (const auto& use : table.action_refs()) {
      if (std::none_of(compiled.actions.begin(), compiled.actions.end(),
                       [&](const auto& action) { return action.action_id == use.id(); })) {
        differ(owner + " does not have action '" + schema.action(use.id()).preamble().name() + "'");
      }
    }
  }
}

// Actions that no table has are called by the program itself: a P4Info may list them, and no client
// can give them data.
void check_actions(const Schema& schema, const softswitch::ProgramInfo& program) {
  std::set<std::uint32_t> of_tables;
  for (const auto& table : schema.info().tables()) {
    for (const auto& use : table.action_refs()) {
      of_tables.insert(use.id());
    }
  }
  for (const auto& action : schema.info().actions()) {
    if (!of_tables.contains(action.preamble().id())) {
      continue;
    }
    const auto& compiled = find(program.actions, action.preamble(), "action");
    const bool same =
        std::equal(compiled.params.begin(), compiled.params.end(), action.params().begin(),
                   action.params().end(), [&](const auto& left, const auto& right) {
                     return left.id == right.id() &&
                            (left.width == static_cast<std::uint32_t>(right.bitwidth()) ||
                             is_translated(right.type_name(), schema));
                   });
    if (!same) {
      differ("action '" + action.preamble().name() + "' has other parameters");
    }
  }
}

template <class Objects, class Infos>
void check_sizes(const Objects& objects, const std::vector<Infos>& program, const char* kind) {
  for (const auto& object : objects) {
    const auto& compiled = find(program, object.preamble(), kind);
    if (compiled.size != static_cast<std::uint64_t>(object.size())) {
      differ(std::string(kind) + " '" + object.preamble().name() + "' has another size");
    }
  }
}

void check_registers(const Schema& schema, const softswitch::ProgramInfo& program) {
  for (const auto& info : schema.info().registers()) {
    const auto& compiled = find(program.registers, info.preamble(), "register");
    const auto widths = scalar_widths(info.type_spec(), schema.info().type_info());
    if (widths.size() != 1 || widths.front().value_or(compiled.width) != compiled.width) {
      differ("register '" + info.preamble().name() + "' has cells of another width");
    }
  }
}

void check_packet_headers(const Schema& schema, const softswitch::ProgramInfo& program) {
  for (const auto& header : schema.info().controller_packet_metadata()) {
    const std::string& name = header.preamble().name();
    const auto compiled =
        std::find_if(program.packet_headers.begin(), program.packet_headers.end(),
                     [&](const auto& candidate) { return candidate.name == name; });
    if (compiled == program.packet_headers.end()) {
      differ("the program has no controller header '" + name + "'");
    }
    for (const auto& field : header.metadata()) {
      if (std::none_of(compiled->fields.begin(), compiled->fields.end(), [&](const auto& one) {
            return one.id == field.id() &&
                   (one.width == static_cast<std::uint32_t>(field.bitwidth()) ||
                    is_translated(field.type_name(), schema));
          })) {
        differ("controller header '" + name + "', field '" + field.name() + "' has another width");
      }
    }
  }
}

}  // namespace

void check_program(const Schema& schema, const softswitch::ProgramInfo& program) {
  check_actions(schema, program);
  check_tables(schema, program);
  check_packet_headers(schema, program);
  check_sizes(schema.info().counters(), program.counters, "counter");
  check_sizes(schema.info().meters(), program.meters, "meter");
  check_sizes(schema.info().registers(), program.registers, "register");
  check_registers(schema, program);
  for (const auto& profile : schema.info().action_profiles()) {
    find(program.profiles, profile.preamble(), "action profile");
  }
  for (const auto& digest : schema.info().digests()) {
    find(program.digests, digest.preamble(), "digest");
  }
  for (const auto& set : schema.info().value_sets()) {
    const auto& compiled = find(program.value_sets, set.preamble(), "value set");
    check_fields(compiled.fields, set.match(), "value set '" + set.preamble().name() + "'", schema);
  }
}

}  // namespace catchment::server
