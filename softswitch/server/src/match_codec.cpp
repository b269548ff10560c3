#include "match_codec.hpp"

#include <algorithm>
#include <string>

#include "bytestring.hpp"
#include "rpc_error.hpp"

namespace catchment::server {

namespace {

using p4config::MatchField;
using softswitch::FieldMatch;
using softswitch::MatchKind;

Where at(const Where& owner, const MatchField& field) {
  return {owner.kind, owner.name, "field", field.name()};
}

const char* kind_name(MatchField::MatchType type) {
  switch (type) {
    case MatchField::EXACT:
      return "exact";
    case MatchField::LPM:
      return "lpm";
    case MatchField::TERNARY:
      return "ternary";
    case MatchField::RANGE:
      return "range";
    case MatchField::OPTIONAL:
      return "optional";
    default:
      return "unknown";
  }
}

MatchField::MatchType sent_type(const p4::v1::FieldMatch& message) {
  switch (message.field_match_type_case()) {
    case p4::v1::FieldMatch::kExact:
      return MatchField::EXACT;
    case p4::v1::FieldMatch::kTernary:
      return MatchField::TERNARY;
    case p4::v1::FieldMatch::kLpm:
      return MatchField::LPM;
    case p4::v1::FieldMatch::kRange:
      return MatchField::RANGE;
    case p4::v1::FieldMatch::kOptional:
      return MatchField::OPTIONAL;
    default:
      return MatchField::UNSPECIFIED;
  }
}

bool has_bits_outside(const std::string& value, const std::string& mask) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    if ((static_cast<std::uint8_t>(value[i]) & ~static_cast<std::uint8_t>(mask[i])) != 0) {
      return true;
    }
  }
  return false;
}

bool is_zero(const std::string& value) {
  return value.find_first_not_of('\0') == std::string::npos;
}

RpcError dont_care(const Where& where, const char* sent) {
  return invalid_argument(where.text() + ": " + sent +
                          " matches everything; leave the field out of the key instead");
}

void decode_lpm(const p4::v1::FieldMatch::LPM& message, unsigned width, const Where& where,
                FieldMatch& result) {
  if (message.prefix_len() == 0) {
    throw dont_care(where, "prefix_len 0");
  }
  if (message.prefix_len() < 0 || static_cast<unsigned>(message.prefix_len()) > width) {
    throw invalid_argument(where.text() + ": prefix_len " + std::to_string(message.prefix_len()) +
                           " is not in 1.." + std::to_string(width));
  }
  result.kind = MatchKind::lpm;
  result.value = to_fixed(message.value(), width, where);
  result.prefix_len = static_cast<std::uint32_t>(message.prefix_len());
  if (has_bits_outside(result.value, prefix_mask(width, result.prefix_len))) {
    throw invalid_argument(where.text() + ": " + to_hex(result.value) +
                           " has bits set beyond the prefix of " +
                           std::to_string(message.prefix_len()) + " bits");
  }
}

void decode_ternary(const p4::v1::FieldMatch::Ternary& message, unsigned width, const Where& where,
                    FieldMatch& result) {
  result.kind = MatchKind::ternary;
  result.value = to_fixed(message.value(), width, where);
  result.mask = to_fixed(message.mask(), width, where);
  if (is_zero(result.mask)) {
    throw dont_care(where, "mask 0");
  }
  if (has_bits_outside(result.value, result.mask)) {
    throw invalid_argument(where.text() + ": " + to_hex(result.value) +
                           " has bits set that the mask " + to_hex(result.mask) + " leaves out");
  }
}

void decode_range(const p4::v1::FieldMatch::Range& message, unsigned width, const Where& where,
                  FieldMatch& result) {
  result.kind = MatchKind::range;
  result.value = to_fixed(message.low(), width, where);
  result.mask = to_fixed(message.high(), width, where);
  if (result.value > result.mask) {
    throw invalid_argument(where.text() + ": the range's low " + to_hex(result.value) +
                           " is above its high " + to_hex(result.mask));
  }
  if (is_zero(result.value) && result.mask == all_ones(width)) {
    throw dont_care(where, "the full range");
  }
}

FieldMatch decode_field(const p4::v1::FieldMatch& message, const MatchField& field,
                        const Where& where) {
  const MatchField::MatchType type = sent_type(message);
  if (type != field.match_type()) {
    throw invalid_argument(where.text() + ": this is " + kind_name(field.match_type()) +
                           " match, the request has " +
                           (type == MatchField::UNSPECIFIED ? "none" : kind_name(type)));
  }
  require_bits(field.bitwidth(), where);
  const auto width = static_cast<unsigned>(field.bitwidth());
  FieldMatch result;
  result.field_id = field.id();
  switch (type) {
    case MatchField::LPM:
      decode_lpm(message.lpm(), width, where, result);
      break;
    case MatchField::TERNARY:
      decode_ternary(message.ternary(), width, where, result);
      break;
    case MatchField::RANGE:
      decode_range(message.range(), width, where, result);
      break;
    case MatchField::OPTIONAL:
      result.kind = MatchKind::optional;
      result.value = to_fixed(message.optional().value(), width, where);
      break;
    default:
      result.kind = MatchKind::exact;
      result.value = to_fixed(message.exact().value(), width, where);
      break;
  }
  return result;
}

void require_exact_fields(const std::vector<FieldMatch>& match, const FieldIndex& fields,
                          const Where& owner) {
  for (const auto& [id, field] : fields) {
    const bool given = std::any_of(match.begin(), match.end(),
                                   [id = id](const FieldMatch& one) { return one.field_id == id; });
    if (!given && field->match_type() == MatchField::EXACT) {
      throw invalid_argument(at(owner, *field).text() + " is missing: exact fields must be given");
    }
  }
}

}  // namespace

std::vector<FieldMatch> decode_match(const MatchMessages& match, const FieldIndex& fields,
                                     const Where& owner) {
  std::vector<FieldMatch> result;
  result.reserve(static_cast<std::size_t>(match.size()));
  for (const auto& message : match) {
    const auto field = fields.find(message.field_id());
    if (field == fields.end()) {
      throw invalid_argument(owner.text() + " has no match field with id " +
                             std::to_string(message.field_id()));
    }
    const Where where = at(owner, *field->second);
    for (const FieldMatch& earlier : result) {
      if (earlier.field_id == message.field_id()) {
        throw invalid_argument(where.text() + " is given twice");
      }
    }
    result.push_back(decode_field(message, *field->second, where));
  }
  if (result.size() < fields.size()) {
    require_exact_fields(result, fields, owner);
  }
  return result;
}

void encode_match(const std::vector<FieldMatch>& match, const FieldIndex& fields,
                  MatchMessages& result) {
  for (const FieldMatch& field : match) {
    const auto known = fields.find(field.field_id);
    const auto width =
        known == fields.end() ? 0U : static_cast<unsigned>(known->second->bitwidth());
    p4::v1::FieldMatch message;
    message.set_field_id(field.field_id);
    switch (field.kind) {
      case MatchKind::exact:
        message.mutable_exact()->set_value(to_canonical(field.value));
        break;
      case MatchKind::optional:
        message.mutable_optional()->set_value(to_canonical(field.value));
        break;
      case MatchKind::lpm:
        if (field.prefix_len == 0) {
          continue;
        }
        message.mutable_lpm()->set_value(to_canonical(field.value));
        message.mutable_lpm()->set_prefix_len(static_cast<std::int32_t>(field.prefix_len));
        break;
      case MatchKind::ternary:
        if (is_zero(field.mask)) {
          continue;
        }
        message.mutable_ternary()->set_value(to_canonical(field.value));
        message.mutable_ternary()->set_mask(to_canonical(field.mask));
        break;
      case MatchKind::range:
        if (is_zero(field.value) && to_canonical(field.mask) == to_canonical(all_ones(width))) {
          continue;
        }
        message.mutable_range()->set_low(to_canonical(field.value));
        message.mutable_range()->set_high(to_canonical(field.mask));
        break;
    }
    result.Add(std::move(message));
  }
}

}  // namespace catchment::server
