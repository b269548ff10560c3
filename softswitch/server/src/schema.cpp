#include "schema.hpp"

#include <utility>

#include "rpc_error.hpp"
#include "type_check.hpp"

namespace catchment::server {

namespace {

template <class Objects, class Index>
void index_by_id(const Objects& objects, const char* kind, Index& index) {
  for (const auto& object : objects) {
    const auto& preamble = object.preamble();
    if (preamble.id() == 0) {
      throw invalid_argument("P4Info: " + std::string(kind) + " '" + preamble.name() +
                             "' has id 0");
    }
    if (!index.emplace(preamble.id(), &object).second) {
      throw invalid_argument("P4Info: " + std::string(kind) + " id " +
                             std::to_string(preamble.id()) + " is used twice (second time by '" +
                             preamble.name() + "')");
    }
  }
}

template <class Index>
const auto& lookup(const Index& index, std::uint32_t id, const char* kind) {
  if (id == 0) {
    throw invalid_argument("the " + std::string(kind) + " id is not set");
  }
  const auto found = index.find(id);
  if (found == index.end()) {
    throw not_found("there is no " + std::string(kind) + " with id " + std::to_string(id) +
                    " in the P4Info of the pipeline");
  }
  return found->second;
}

}  // namespace

Schema::Schema(p4config::P4Info info) : info_(std::move(info)) {
  check_types(info_);
  index_by_id(info_.actions(), "action", actions_);
  index_by_id(info_.action_profiles(), "action profile", profiles_);
  index_by_id(info_.counters(), "counter", counters_);
  index_by_id(info_.meters(), "meter", meters_);
  index_by_id(info_.registers(), "register", registers_);
  index_by_id(info_.digests(), "digest", digests_);
  index_by_id(info_.value_sets(), "value set", value_sets_);
  index_tables();
}

void Schema::index_tables() {
  ById<p4config::Table> seen;
  index_by_id(info_.tables(), "table", seen);
  for (const auto& info : info_.tables()) {
    TableSchema table;
    table.info = &info;
    for (const auto& field : info.match_fields()) {
      table.fields.emplace(field.id(), &field);
      table.needs_priority |= field.match_type() == p4config::MatchField::TERNARY ||
                              field.match_type() == p4config::MatchField::RANGE ||
                              field.match_type() == p4config::MatchField::OPTIONAL;
    }
    for (const auto& use : info.action_refs()) {
      if (!actions_.contains(use.id())) {
        throw invalid_argument("P4Info: table '" + info.preamble().name() + "' uses action id " +
                               std::to_string(use.id()) + ", which is not defined");
      }
      table.actions.emplace(use.id(), &use);
    }
    tables_.emplace(info.preamble().id(), std::move(table));
  }
  for (const auto& counter : info_.direct_counters()) {
    const auto table = tables_.find(counter.direct_table_id());
    if (table == tables_.end()) {
      throw invalid_argument("P4Info: direct counter '" + counter.preamble().name() +
                             "' belongs to a table that is not defined");
    }
    table->second.counter = &counter;
  }
  for (const auto& meter : info_.direct_meters()) {
    const auto table = tables_.find(meter.direct_table_id());
    if (table == tables_.end()) {
      throw invalid_argument("P4Info: direct meter '" + meter.preamble().name() +
                             "' belongs to a table that is not defined");
    }
    table->second.meter = &meter;
  }
}

const TableSchema& Schema::table(std::uint32_t id) const { return lookup(tables_, id, "table"); }

const p4config::Action& Schema::action(std::uint32_t id) const {
  return *lookup(actions_, id, "action");
}

const p4config::ActionProfile& Schema::profile(std::uint32_t id) const {
  return *lookup(profiles_, id, "action profile");
}

const p4config::Counter& Schema::counter(std::uint32_t id) const {
  return *lookup(counters_, id, "counter");
}

const p4config::Meter& Schema::meter(std::uint32_t id) const {
  return *lookup(meters_, id, "meter");
}

const p4config::Register& Schema::reg(std::uint32_t id) const {
  return *lookup(registers_, id, "register");
}

const p4config::Digest& Schema::digest(std::uint32_t id) const {
  return *lookup(digests_, id, "digest");
}

const p4config::ValueSet& Schema::value_set(std::uint32_t id) const {
  return *lookup(value_sets_, id, "value set");
}

const p4config::ControllerPacketMetadata* Schema::packet_header(const std::string& name) const {
  for (const auto& header : info_.controller_packet_metadata()) {
    if (header.preamble().name() == name) {
      return &header;
    }
  }
  return nullptr;
}

void Schema::use_packet_layouts(std::vector<softswitch::PacketHeaderInfo> layouts) {
  packet_layouts_ = std::move(layouts);
}

const std::vector<softswitch::PacketFieldInfo>& Schema::packet_layout(
    const std::string& name) const {
  static const std::vector<softswitch::PacketFieldInfo> none;
  for (const auto& layout : packet_layouts_) {
    if (layout.name == name && packet_header(name) != nullptr) {
      return layout.fields;
    }
  }
  return none;
}

}  // namespace catchment::server
