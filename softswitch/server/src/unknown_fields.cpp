#include "unknown_fields.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "p4/config/v1/p4info.pb.h"
#include "rpc_error.hpp"

namespace catchment::server {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A type of message with the fields that have messages in them, so that those of each update are
// found without asking the descriptors again.
struct Shape {
  struct Part {
    const FieldDescriptor* field;
    bool repeated;
    const Shape* shape;
  };
  const Reflection* reflection = nullptr;
  std::vector<Part> parts;
};

class Shapes {
 public:
  const Shape& of(const Message& message) {
    const std::lock_guard lock(mutex_);
    return add(*message.GetDescriptor());
  }

 private:
  const Shape& add(const Descriptor& type) {
    const auto [place, is_new] = shapes_.try_emplace(&type);
    Shape& shape = place->second;
    if (!is_new) {
      return shape;
    }
    shape.reflection =
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->GetReflection();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.message_type() != nullptr &&
          field.message_type() != p4::config::v1::P4Info::descriptor()) {
        shape.parts.push_back({&field, field.is_repeated(), &add(*field.message_type())});
      }
    }
    return shape;
  }

  std::mutex mutex_;
  std::map<const Descriptor*, Shape> shapes_;  // types may have themselves in them
};

bool any_in(const Message& message, const Shape& shape) {
  const Reflection& reflection = *shape.reflection;
  if (!reflection.GetUnknownFields(message).empty()) {
    return true;
  }
  for (const auto& [field, repeated, inner] : shape.parts) {
    if (!repeated) {
      if (reflection.HasField(message, field) &&
          any_in(reflection.GetMessage(message, field), *inner)) {
        return true;
      }
      continue;
    }
    for (int i = reflection.FieldSize(message, field); i-- > 0;) {
      if (any_in(reflection.GetRepeatedMessage(message, field, i), *inner)) {
        return true;
      }
    }
  }
  return false;
}

struct Found {
  std::string place;  // the fields that lead to the message; empty: the one that was asked about
  std::string type;
  int number;
};

std::optional<Found> own(const Message& message) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) {
    return std::nullopt;
  }
  return Found{"", message.GetDescriptor()->full_name(), unknown.field(0).number()};
}

std::optional<Found> first(const Message& message);

std::optional<Found> first_below(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  const int count = field.is_repeated() ? reflection.FieldSize(message, &field)
                                        : int{reflection.HasField(message, &field)};
  for (int i = 0; i < count; ++i) {
    auto found = first(field.is_repeated() ? reflection.GetRepeatedMessage(message, &field, i)
                                           : reflection.GetMessage(message, &field));
    if (found) {
      std::string place = field.name();
      if (field.is_repeated()) {
        place.append("[").append(std::to_string(i)).append("]");
      }
      if (!found->place.empty()) {
        place.append(".").append(found->place);
      }
      found->place = std::move(place);
      return found;
    }
  }
  return std::nullopt;
}

std::optional<Found> first(const Message& message) {
  const auto& descriptor = *message.GetDescriptor();
  if (&descriptor == p4::config::v1::P4Info::descriptor()) {
    return std::nullopt;
  }
  auto found = own(message);
  for (int i = 0; !found && i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      found = first_below(message, field);
    }
  }
  return found;
}

void refuse(const std::optional<Found>& found) {
  if (!found) {
    return;
  }
  std::string text = found->place;
  text.append(text.empty() ? "" : ": ")
      .append("field number ")
      .append(std::to_string(found->number))
      .append(" of ")
      .append(found->type)
      .append(" is not known here, so it would have no effect: leave it out, and keep to the ")
      .append("version of P4Runtime that Capabilities tells");
  throw invalid_argument(text);
}

}  // namespace

void refuse_unknown_fields(const Message& message) {
  static Shapes shapes;
  if (any_in(message, shapes.of(message))) {
    refuse(first(message));
  }
}

void refuse_own_unknown_fields(const Message& message) { refuse(own(message)); }

}  // namespace catchment::server
