#include "strays.hpp"

namespace catchment::softswitch {

bool StrayFinder::inside(const std::string& what, const void* place, std::size_t bytes) {
  if (memory_.contains(place, bytes)) {
    return true;
  }
  strays_.push_back(what);
  return false;
}

void StrayFinder::look_at(const std::string& what, const void* place, std::size_t bytes) {
  if (bytes != 0) {
    inside(what, place, bytes);
  }
}

void StrayFinder::look_at_action(const std::string& what, const rt::BoundAction* action) {
  if (inside(what, action, sizeof *action) && action->data != nullptr) {
    inside(what + ": arguments", action->data, sizeof *action->data);
  }
}

void StrayFinder::look_at_row(const std::string& what, const rt::Row& row,
                              const rt::TableLayout& layout) {
  if (row.action != nullptr) {
    look_at_action(what + ": action", row.action);
  }
  if (row.group != nullptr && inside(what + ": group", row.group, sizeof *row.group)) {
    look_at(what + ": members", row.group->members, row.group->count * sizeof row.group->members);
    for (std::uint32_t i = 0; i < row.group->count; ++i) {
      look_at_action(what + ": member", row.group->members[i]);
    }
  }
  if (row.ranges != nullptr) {
    look_at(what + ": ranges", row.ranges, layout.range_fields * 2 * sizeof *row.ranges);
  }
  if (row.meter != nullptr) {
    look_at(what + ": meter", row.meter, sizeof *row.meter);
  }
}

void StrayFinder::look_at_index(const std::string& what, const rt::HashIndex& index,
                                const rt::TableLayout& layout) {
  const std::size_t stride = layout.key_words + 1;
  const std::size_t words = (index.mask + 1) * stride;
  if (!inside(what + ": buckets", index.buckets, words * sizeof *index.buckets)) {
    return;
  }
  for (std::size_t at = 0; at < words; at += stride) {
    const auto* row = reinterpret_cast<const rt::Row*>(index.buckets[at + layout.key_words]);
    for (; row != nullptr && inside(what + ": row", row, sizeof *row); row = row->next) {
      look_at_row(what + ": row", *row, layout);
    }
  }
}

void StrayFinder::look_at(const std::string& name, const rt::Table& table,
                          const rt::TableLayout& layout) {
  if (!inside(name, &table, sizeof table)) {
    return;
  }
  look_at_index(name, table.exact, layout);
  look_at(name + ": tuples", table.tuples, table.tuple_count * sizeof *table.tuples);
  for (std::size_t i = 0; i < table.tuple_count; ++i) {
    const rt::Tuple& tuple = table.tuples[i];
    look_at(name + ": mask", tuple.mask, layout.key_words * sizeof *tuple.mask);
    look_at_index(name, tuple.index, layout);
  }
  if (table.default_row != nullptr &&
      inside(name + ": default row", table.default_row, sizeof *table.default_row)) {
    look_at_row(name + ": default row", *table.default_row, layout);
  }
}

void StrayFinder::look_at(const rt::Engine& engine) {
  inside("counters of ports", engine.ports, rt::kPorts * sizeof *engine.ports);
  inside("state of random()", engine.random, sizeof *engine.random);
  const auto replicas = [&](const std::string& what, const rt::ReplicaList& list) {
    look_at(what + ": replicas", list.replicas, list.count * sizeof *list.replicas);
  };
  if (inside("multicast groups", engine.groups, rt::kGroups * sizeof *engine.groups)) {
    for (std::size_t i = 0; i < rt::kGroups; ++i) {
      replicas("multicast group " + std::to_string(i), engine.groups[i]);
    }
  }
  if (inside("clone sessions", engine.sessions, rt::kSessions * sizeof *engine.sessions)) {
    for (std::size_t i = 0; i < rt::kSessions; ++i) {
      replicas("clone session " + std::to_string(i), engine.sessions[i].to);
    }
  }
}

}  // namespace catchment::softswitch
