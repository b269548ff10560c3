// What a compiled program says about itself: every control-visible object with its P4Info id, name
// and widths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catchment::softswitch {

enum class MatchKind : std::uint8_t { exact, lpm, ternary, range, optional };

enum class CounterUnit : std::uint8_t { packets, bytes, both };

struct MatchFieldInfo {
  std::uint32_t id = 0;
  std::string name;
  std::uint32_t width = 0;  // bits
  MatchKind kind = MatchKind::exact;
};

struct ParamInfo {
  std::uint32_t id = 0;
  std::string name;
  std::uint32_t width = 0;  // bits
};

struct ActionInfo {
  std::uint32_t id = 0;
  std::string name;
  std::vector<ParamInfo> params;
};

/// An action that a table may run, and where.
struct ActionUse {
  std::uint32_t action_id = 0;
  bool entry_allowed = true;    // false: @defaultonly
  bool default_allowed = true;  // false: @tableonly
};

struct TableInfo {
  std::uint32_t id = 0;
  std::string name;
  std::vector<MatchFieldInfo> fields;
  std::vector<ActionUse> actions;
  std::uint64_t size = 1024;
  bool const_entries = false;
  bool const_default = false;
  std::uint32_t profile_id = 0;         // action profile or selector, 0: none
  std::uint32_t direct_counter_id = 0;  // 0: none
  std::uint32_t direct_meter_id = 0;    // 0: none
  bool idle_timeout = false;
};

struct ProfileInfo {
  std::uint32_t id = 0;
  std::string name;
  std::uint64_t size = 0;
  bool selector = false;
  std::uint32_t max_group_size = 0;
};

struct CounterInfo {
  std::uint32_t id = 0;
  std::string name;
  CounterUnit unit = CounterUnit::both;
  std::uint64_t size = 0;      // cells; of a direct counter: unused
  std::uint32_t table_id = 0;  // of a direct counter, else 0
};

struct MeterInfo {
  std::uint32_t id = 0;
  std::string name;
  CounterUnit unit = CounterUnit::packets;
  std::uint64_t size = 0;
  std::uint32_t table_id = 0;  // of a direct meter, else 0
};

struct RegisterInfo {
  std::uint32_t id = 0;
  std::string name;
  std::uint32_t width = 0;  // bits
  std::uint64_t size = 0;
};

struct DigestInfo {
  std::uint32_t id = 0;
  std::string name;
  std::vector<std::uint32_t> member_widths;  // bits, in order
};

struct ValueSetInfo {
  std::uint32_t id = 0;
  std::string name;
  std::vector<MatchFieldInfo> fields;
  std::uint64_t size = 0;
};

/// A field of a controller header on the wire.
struct PacketFieldInfo {
  std::uint32_t id = 0;     // of P4Info's metadata; 0: hidden from clients
  std::uint32_t width = 0;  // bits
};

struct PacketHeaderInfo {
  std::string name;  // "packet_in" or "packet_out"
  std::vector<PacketFieldInfo> fields;
};

struct ProgramInfo {
  std::string name;
  std::vector<TableInfo> tables;
  std::vector<ActionInfo> actions;
  std::vector<ProfileInfo> profiles;
  std::vector<CounterInfo> counters;
  std::vector<MeterInfo> meters;
  std::vector<RegisterInfo> registers;
  std::vector<DigestInfo> digests;
  std::vector<ValueSetInfo> value_sets;
  std::vector<PacketHeaderInfo> packet_headers;
};

}  // namespace catchment::softswitch
