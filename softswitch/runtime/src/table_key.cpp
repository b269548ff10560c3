// TableStore: from match fields to masked key words.
#include <algorithm>

#include "table_store.hpp"

namespace catchment::softswitch {

std::string TableStore::Key::identity() const {
  std::string text;
  for (const Words* words : {&key, &mask, &ranges}) {
    text.append(reinterpret_cast<const char*>(words->data()),
                words->size() * sizeof(std::uint64_t));
  }
  text.append(reinterpret_cast<const char*>(&priority), sizeof priority);
  return text;
}

void TableStore::put(Words& words, const rt::KeyField& place, const Words& value) const {
  for (std::uint32_t i = 0; i < place.words; ++i) {
    words[place.word + i] |= value[i] << place.shift;
  }
}

Status TableStore::match_field(const TableEntry& entry, std::size_t index, Key& key) const {
  const MatchFieldInfo& field = info_.fields[index];
  const rt::KeyField& place = layout_.fields[index];
  const std::string what = info_.name + "." + field.name;
  const Words all = prefix_mask(field.width, field.width);
  const auto found = std::ranges::find(entry.match, field.id, &FieldMatch::field_id);
  if (found == entry.match.end()) {
    if (field.kind == MatchKind::exact) {
      return {StatusCode::invalid_argument, what + ": an exact field must be given"};
    }
    if (place.range) {
      key.ranges[2 * place.word + 1] = all[0];
    }
    return {};
  }
  if (found->kind != field.kind) {
    return {StatusCode::invalid_argument, what + ": the match is of another kind than the field"};
  }
  auto value = to_words(found->value, field.width, what);
  if (!value.ok()) {
    return value.status();
  }
  Words mask = all;
  FieldMatch canonical{field.id, field.kind, to_bytes(value.value()), {}, 0};
  switch (field.kind) {
    case MatchKind::exact:
    case MatchKind::optional:
      break;
    case MatchKind::lpm:
      if (found->prefix_len > field.width) {
        return {StatusCode::invalid_argument, what + ": prefix of " +
                                                  std::to_string(found->prefix_len) + " bits in " +
                                                  std::to_string(field.width)};
      }
      mask = prefix_mask(found->prefix_len, field.width);
      key.prefix_len = canonical.prefix_len = found->prefix_len;
      break;
    case MatchKind::ternary: {
      auto given = to_words(found->mask, field.width, what + " mask");
      if (!given.ok()) {
        return given.status();
      }
      mask = given.value();
      canonical.mask = to_bytes(mask);
      break;
    }
    case MatchKind::range: {
      auto high = to_words(found->mask, field.width, what + " high");
      if (!high.ok()) {
        return high.status();
      }
      if (high.value()[0] < value.value()[0]) {
        return {StatusCode::invalid_argument, what + ": the range ends before it begins"};
      }
      key.ranges[2 * place.word] = value.value()[0];
      key.ranges[2 * place.word + 1] = high.value()[0];
      canonical.mask = to_bytes(high.value());
      key.canonical.push_back(std::move(canonical));
      return {};
    }
  }
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if ((value.value()[i] & ~mask[i]) != 0) {
      return {StatusCode::invalid_argument, what + ": the value has bits outside its mask"};
    }
  }
  put(key.key, place, value.value());
  put(key.mask, place, mask);
  if (field.kind == MatchKind::exact || std::ranges::any_of(mask, [](auto w) { return w != 0; })) {
    key.canonical.push_back(std::move(canonical));
  }
  return {};
}

Result<TableStore::Key> TableStore::make_key(const TableEntry& entry) const {
  Key key;
  key.key.assign(layout_.key_words, 0);
  key.mask.assign(layout_.key_words, 0);
  key.ranges.assign(2 * std::size_t{layout_.range_fields}, 0);
  key.priority = entry.priority;
  if (info_.fields.empty()) {
    return Status(StatusCode::invalid_argument,
                  "table " + info_.name + " has no key: only its default action can be set");
  }
  if (needs_priority_ && entry.priority <= 0) {
    return Status(StatusCode::invalid_argument,
                  "table " + info_.name + ": entries need a priority above 0");
  }
  if (!needs_priority_ && entry.priority != 0) {
    return Status(StatusCode::invalid_argument,
                  "table " + info_.name + ": entries of exact or lpm tables have no priority");
  }
  for (const FieldMatch& match : entry.match) {
    const auto same = [&](const FieldMatch& m) { return m.field_id == match.field_id; };
    if (std::ranges::find(info_.fields, match.field_id, &MatchFieldInfo::id) ==
        info_.fields.end()) {
      return Status(StatusCode::invalid_argument, "table " + info_.name + " has no match field " +
                                                      std::to_string(match.field_id));
    }
    if (std::ranges::count_if(entry.match, same) != 1) {
      return Status(StatusCode::invalid_argument, "table " + info_.name + ": match field " +
                                                      std::to_string(match.field_id) + " twice");
    }
  }
  for (std::size_t i = 0; i < info_.fields.size(); ++i) {
    if (Status status = match_field(entry, i, key); !status.ok()) {
      return status;
    }
  }
  return key;
}

}  // namespace catchment::softswitch
