// An index over a P4Info: every object a client may name, by id, with what a request is checked
// against.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "catchment/softswitch/description.hpp"
#include "p4/config/v1/p4info.pb.h"

namespace catchment::server {

namespace p4config = p4::config::v1;

// A table with its fields and actions by id.
struct TableSchema {
  const p4config::Table* info = nullptr;
  std::unordered_map<std::uint32_t, const p4config::MatchField*> fields;
  std::unordered_map<std::uint32_t, const p4config::ActionRef*> actions;
  const p4config::DirectCounter* counter = nullptr;
  const p4config::DirectMeter* meter = nullptr;
  bool needs_priority = false;  // has a ternary, range or optional field

  const std::string& name() const { return info->preamble().name(); }
};

// Immutable once a pipeline has it; every pointer points into the P4Info it owns.
class Schema {
 public:
  // Throws RpcError(INVALID_ARGUMENT) when the P4Info contradicts itself: an id used twice, or a
  // reference to an object that is not there.
  explicit Schema(p4config::P4Info info);
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  const p4config::P4Info& info() const { return info_; }

  // Each throws RpcError(NOT_FOUND) that names the kind and the id when there is no such object.
  const TableSchema& table(std::uint32_t id) const;
  const p4config::Action& action(std::uint32_t id) const;
  const p4config::ActionProfile& profile(std::uint32_t id) const;
  const p4config::Counter& counter(std::uint32_t id) const;
  const p4config::Meter& meter(std::uint32_t id) const;
  const p4config::Register& reg(std::uint32_t id) const;
  const p4config::Digest& digest(std::uint32_t id) const;
  const p4config::ValueSet& value_set(std::uint32_t id) const;

  // Returns the controller header "packet_in" or "packet_out", or nullptr.
  const p4config::ControllerPacketMetadata* packet_header(const std::string& name) const;

  // Says how the program lays its controller headers out.
  void use_packet_layouts(std::vector<softswitch::PacketHeaderInfo> layouts);

  // Returns the fields of that controller header as they lie in a frame; none for one that the
  // P4Info leaves out: the client then sends and gets its bytes as part of the payload.
  const std::vector<softswitch::PacketFieldInfo>& packet_layout(const std::string& name) const;

 private:
  template <class T>
  using ById = std::unordered_map<std::uint32_t, const T*>;

  void index_tables();

  p4config::P4Info info_;
  std::unordered_map<std::uint32_t, TableSchema> tables_;
  ById<p4config::Action> actions_;
  ById<p4config::ActionProfile> profiles_;
  ById<p4config::Counter> counters_;
  ById<p4config::Meter> meters_;
  ById<p4config::Register> registers_;
  ById<p4config::Digest> digests_;
  ById<p4config::ValueSet> value_sets_;
  std::vector<softswitch::PacketHeaderInfo> packet_layouts_;
};

}  // namespace catchment::server
