#include "state_entities.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data_codec.hpp"
#include "match_codec.hpp"
#include "table_codec.hpp"

namespace catchment::server {

namespace {

using p4::v1::Update;

void require_modify(Update::Type type, const char* kind) {
  if (type != Update::MODIFY) {
    throw invalid_argument(std::string(kind) + " entries can only be modified");
  }
}

// Returns the index of a message, checked against the array; nullopt when it is left out.
template <class Message>
std::optional<std::uint64_t> index_of(const Message& message, std::int64_t size,
                                      const Where& where) {
  if (!message.has_index()) {
    return std::nullopt;
  }
  const std::int64_t index = message.index().index();
  if (index < 0) {
    throw invalid_argument(where.text() + ": index " + std::to_string(index) + " is negative");
  }
  if (index >= size) {
    throw out_of_range(where.text() + ": index " + std::to_string(index) +
                       " is beyond its size of " + std::to_string(size));
  }
  return static_cast<std::uint64_t>(index);
}

// Calls visit(info) for the object with this id, or for all of them when it is 0.
template <class Objects, class Find, class Visit>
void for_each(std::uint32_t id, const Objects& all, bool has_index, const char* kind, Find find,
              Visit visit) {
  if (id != 0) {
    visit(find(id));
    return;
  }
  if (has_index) {
    throw invalid_argument("a read of every " + std::string(kind) + " (id 0) cannot have an index");
  }
  for (const auto& info : all) {
    visit(info);
  }
}

FieldIndex fields_of(const p4config::ValueSet& info) {
  FieldIndex fields;
  for (const auto& field : info.match()) {
    fields.emplace(field.id(), &field);
  }
  return fields;
}

// Equal for equal members, however they were written.
std::string canonical_key(std::vector<softswitch::FieldMatch> match, const FieldIndex& fields) {
  std::sort(match.begin(), match.end(),
            [](const auto& left, const auto& right) { return left.field_id < right.field_id; });
  p4::v1::ValueSetMember member;
  encode_match(match, fields, *member.mutable_match());
  return member.SerializeAsString();
}

}  // namespace

void write_counter(Update::Type type, const p4::v1::CounterEntry& message, Target& target) {
  require_modify(type, "counter");
  const auto& info = target.schema().counter(message.counter_id());
  const auto index = index_of(message, info.size(), {"counter", info.preamble().name()});
  if (message.has_data()) {
    check(target.dataplane().write_counter(message.counter_id(), index,
                                           decode_counter(message.data())));
  }
}

void write_meter(Update::Type type, const p4::v1::MeterEntry& message, Target& target) {
  require_modify(type, "meter");
  const auto& info = target.schema().meter(message.meter_id());
  const auto index = index_of(message, info.size(), {"meter", info.preamble().name()});
  if (message.has_counter_data()) {
    check_cleared(message.counter_data());
  }
  std::optional<softswitch::MeterConfig> config;
  if (message.has_config()) {
    config = decode_meter(message.config(), info.spec());
  }
  check(target.dataplane().write_meter(message.meter_id(), index, config));
  if (message.has_counter_data()) {
    check(target.dataplane().clear_meter_counts(message.meter_id(), index));
  }
}

void write_register(Update::Type type, const p4::v1::RegisterEntry& message, Target& target) {
  require_modify(type, "register");
  const auto& info = target.schema().reg(message.register_id());
  const Where where{"register", info.preamble().name()};
  const auto index = index_of(message, info.size(), where);
  if (!message.has_data()) {
    throw invalid_argument(where.text() + ": the write has no data");
  }
  const std::string value =
      decode_scalar(message.data(), info.type_spec(), target.schema().info().type_info(), where);
  check(target.dataplane().write_register(message.register_id(), index, value));
}

void write_value_set(Update::Type type, const p4::v1::ValueSetEntry& message, Target& target) {
  require_modify(type, "value set");
  const auto& info = target.schema().value_set(message.value_set_id());
  const Where where{"value set", info.preamble().name()};
  if (message.members_size() > info.size()) {
    throw RpcError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                   where.text() + ": " + std::to_string(message.members_size()) +
                       " members, it takes at most " + std::to_string(info.size()));
  }
  const FieldIndex fields = fields_of(info);
  softswitch::ValueSetEntry entry;
  entry.value_set_id = message.value_set_id();
  std::set<std::string> seen;
  for (const auto& member : message.members()) {
    entry.members.push_back(decode_match(member.match(), fields, where));
    if (!seen.insert(canonical_key(entry.members.back(), fields)).second) {
      throw RpcError(grpc::StatusCode::ALREADY_EXISTS, where.text() + ": a member is there twice");
    }
  }
  check(target.dataplane().write(entry));
}

void write_digest(Update::Type type, const p4::v1::DigestEntry& message, Target& target) {
  const auto& info = target.schema().digest(message.digest_id());
  const bool enabled = target.digests.contains(message.digest_id());
  const std::string where = "digest '" + info.preamble().name() + "'";
  if (type == Update::INSERT && enabled) {
    throw RpcError(grpc::StatusCode::ALREADY_EXISTS, where + " is enabled already; modify it");
  }
  if (type != Update::INSERT && !enabled) {
    throw not_found(where + " is not enabled; insert it first");
  }
  if (type == Update::DELETE) {
    target.digests.erase(message.digest_id());
    return;
  }
  const auto& config = message.config();
  if (config.max_timeout_ns() < 0 || config.max_list_size() < 0 || config.ack_timeout_ns() < 0) {
    throw invalid_argument(where + ": a timeout or list size is negative");
  }
  target.digests[message.digest_id()] = config;
}

void read_counters(const p4::v1::CounterEntry& request, const Target& target, EntitySink& sink) {
  const auto find = [&](std::uint32_t id) -> const auto& { return target.schema().counter(id); };
  const auto visit = [&](const p4config::Counter& info) {
    const std::uint32_t id = info.preamble().id();
    const auto index = index_of(request, info.size(), {"counter", info.preamble().name()});
    for (const auto& cell : take(target.dataplane().read_counter(id, index))) {
      auto& message = *sink.add().mutable_counter_entry();
      message.set_counter_id(id);
      message.mutable_index()->set_index(static_cast<std::int64_t>(cell.index));
      encode_counter(cell.value, *message.mutable_data());
    }
  };
  for_each(request.counter_id(), target.schema().info().counters(), request.has_index(), "counter",
           find, visit);
}

void read_meters(const p4::v1::MeterEntry& request, const Target& target, EntitySink& sink) {
  const auto find = [&](std::uint32_t id) -> const auto& { return target.schema().meter(id); };
  const auto visit = [&](const p4config::Meter& info) {
    const std::uint32_t id = info.preamble().id();
    const auto index = index_of(request, info.size(), {"meter", info.preamble().name()});
    for (const auto& cell : take(target.dataplane().read_meter(id, index))) {
      auto& message = *sink.add().mutable_meter_entry();
      message.set_meter_id(id);
      message.mutable_index()->set_index(static_cast<std::int64_t>(cell.index));
      if (cell.config) {
        encode_meter(*cell.config, *message.mutable_config());
      }
      if (request.has_counter_data()) {
        encode_meter_counts(cell.counts, *message.mutable_counter_data());
      }
    }
  };
  for_each(request.meter_id(), target.schema().info().meters(), request.has_index(), "meter", find,
           visit);
}

void read_registers(const p4::v1::RegisterEntry& request, const Target& target, EntitySink& sink) {
  const auto& types = target.schema().info().type_info();
  const auto find = [&](std::uint32_t id) -> const auto& { return target.schema().reg(id); };
  const auto visit = [&](const p4config::Register& info) {
    const std::uint32_t id = info.preamble().id();
    const auto index = index_of(request, info.size(), {"register", info.preamble().name()});
    for (const auto& cell : take(target.dataplane().read_register(id, index))) {
      auto& message = *sink.add().mutable_register_entry();
      message.set_register_id(id);
      message.mutable_index()->set_index(static_cast<std::int64_t>(cell.index));
      std::span<const std::string> scalars(&cell.value, 1);
      *message.mutable_data() = encode_data(scalars, info.type_spec(), types);
    }
  };
  for_each(request.register_id(), target.schema().info().registers(), request.has_index(),
           "register", find, visit);
}

void read_value_sets(const p4::v1::ValueSetEntry& request, const Target& target, EntitySink& sink) {
  const auto find = [&](std::uint32_t id) -> const auto& { return target.schema().value_set(id); };
  const auto visit = [&](const p4config::ValueSet& info) {
    const FieldIndex fields = fields_of(info);
    softswitch::ValueSetEntry filter;
    filter.value_set_id = info.preamble().id();
    for (const auto& entry : take(target.dataplane().read(filter))) {
      auto& message = *sink.add().mutable_value_set_entry();
      message.set_value_set_id(entry.value_set_id);
      for (const auto& member : entry.members) {
        encode_match(member, fields, *message.add_members()->mutable_match());
      }
    }
  };
  for_each(request.value_set_id(), target.schema().info().value_sets(), false, "value set", find,
           visit);
}

void read_digests(const p4::v1::DigestEntry& request, const Target& target, EntitySink& sink) {
  if (request.digest_id() != 0) {
    target.schema().digest(request.digest_id());
  }
  for (const auto& [id, config] : target.digests) {
    if (request.digest_id() == 0 || request.digest_id() == id) {
      auto& message = *sink.add().mutable_digest_entry();
      message.set_digest_id(id);
      *message.mutable_config() = config;
    }
  }
}

}  // namespace catchment::server
