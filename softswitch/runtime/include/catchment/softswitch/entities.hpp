// The values that cross the control-facing API. Every `std::string` value is a big-endian byte
// string: any length is taken when the number fits the declared width, the shortest form (at least
// one byte) is given back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "catchment/softswitch/description.hpp"

namespace catchment::softswitch {

/// One field of a match key. A field that is left out of an entry does not care (not allowed for
/// exact).
struct FieldMatch {
  std::uint32_t field_id = 0;
  MatchKind kind = MatchKind::exact;
  std::string value;             // exact, lpm, ternary, optional; range: low
  std::string mask;              // ternary: mask; range: high
  std::uint32_t prefix_len = 0;  // lpm
};

struct ParamValue {
  std::uint32_t param_id = 0;
  std::string value;
};

struct ActionCall {
  std::uint32_t action_id = 0;
  std::vector<ParamValue> params;
};

struct MemberRef {
  std::uint32_t member_id = 0;
};

struct GroupRef {
  std::uint32_t group_id = 0;
};

struct OneShotAction {
  ActionCall action;
  std::int32_t weight = 1;
  std::string watch_port;  // empty: none
};

/// An action profile's action set in one message.
struct OneShot {
  std::vector<OneShotAction> actions;
};

/// monostate: unset (a delete or read key; or, for a default entry's modify: back to the program's
/// own default).
using TableAction = std::variant<std::monostate, ActionCall, MemberRef, GroupRef, OneShot>;

struct CounterValue {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

/// Two-rate three-colour marker (RFC 2698), rates in units per second, bursts in units.
struct MeterConfig {
  std::int64_t cir = 0;
  std::int64_t cburst = 0;
  std::int64_t pir = 0;
  std::int64_t pburst = 0;
};

/// How many frames a meter gave each colour.
struct MeterCounts {
  CounterValue green;
  CounterValue yellow;
  CounterValue red;
};

struct TableEntry {
  std::uint32_t table_id = 0;
  std::vector<FieldMatch> match;
  std::int32_t priority = 0;  // ternary, range, optional: > 0, larger wins; else 0
  TableAction action;
  bool is_default = false;
  bool is_const = false;  // out only: the program's own and declared const, alone or with its list
  std::uint64_t controller_metadata = 0;
  std::string metadata;
  std::int64_t idle_timeout_ns = 0;         // 0: never
  std::optional<CounterValue> counter;      // direct counter; in: sets it
  std::optional<MeterConfig> meter;         // direct meter; unset: the default (always green)
  std::optional<MeterCounts> meter_counts;  // direct meter; in: sets them back to zero
  std::optional<std::int64_t>
      elapsed_ns;  // out only: time since last hit, of tables with idle timeout
};

struct ProfileMember {
  std::uint32_t profile_id = 0;
  std::uint32_t member_id = 0;
  ActionCall action;
};

struct ProfileGroupMember {
  std::uint32_t member_id = 0;
  std::int32_t weight = 1;
  std::string watch_port;  // empty: none
};

struct ProfileGroup {
  std::uint32_t profile_id = 0;
  std::uint32_t group_id = 0;
  std::vector<ProfileGroupMember> members;
  std::int32_t max_size = 0;
  bool counts_members = false;  // the size is how many members there are, whatever they weigh
};

/// One copy that the replication engine makes.
struct Replica {
  std::uint32_t port = 0;
  std::uint32_t instance = 0;  // egress_rid
};

struct MulticastGroup {
  std::uint32_t group_id = 0;  // > 0
  std::vector<Replica> replicas;
  std::string metadata;
};

struct CloneSession {
  std::uint32_t session_id = 0;  // > 0
  std::vector<Replica> replicas;
  std::uint32_t class_of_service = 0;
  std::int32_t packet_length_bytes = 0;  // 0: whole packet
};

struct CounterCell {
  std::uint64_t index = 0;
  CounterValue value;
};

struct MeterCell {
  std::uint64_t index = 0;
  std::optional<MeterConfig> config;
  MeterCounts counts;
};

struct RegisterCell {
  std::uint64_t index = 0;
  std::string value;
};

struct ValueSetEntry {
  std::uint32_t value_set_id = 0;
  std::vector<std::vector<FieldMatch>> members;
};

/// A frame for the controller: as the deparser wrote it, the packet-in controller header (if any)
/// at its front.
struct PacketIn {
  std::string payload;
};

/// One digest() call: the members as byte strings in declared order.
struct DigestMessage {
  std::uint32_t digest_id = 0;
  std::vector<std::string> members;
  std::int64_t timestamp_ns = 0;
};

struct IdleNotification {
  TableEntry entry;  // key part only
  std::int64_t timestamp_ns = 0;
};

}  // namespace catchment::softswitch
