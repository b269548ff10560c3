#include "packet_codec.hpp"

#include <cstdint>
#include <map>
#include <vector>

#include "bytestring.hpp"
#include "rpc_error.hpp"
#include "where.hpp"

namespace catchment::server {

namespace {

using Header = p4config::ControllerPacketMetadata;

using Layout = std::vector<softswitch::PacketFieldInfo>;

unsigned header_bits(const Layout& layout) {
  unsigned bits = 0;
  for (const auto& field : layout) {
    bits += field.width;
  }
  return bits;
}

const Header::Metadata* find_field(const Header* header, std::uint32_t id) {
  if (header != nullptr) {
    for (const auto& field : header->metadata()) {
      if (field.id() == id) {
        return &field;
      }
    }
  }
  return nullptr;
}

bool bit_at(std::string_view bytes, unsigned position) {
  return (static_cast<std::uint8_t>(bytes[position / 8]) >> (7 - position % 8) & 1) != 0;
}

void set_bit(std::string& bytes, unsigned position) {
  char& byte = bytes[position / 8];
  byte = static_cast<char>(static_cast<std::uint8_t>(byte) | 0x80U >> position % 8);
}

// Copies `width` bits: from the end of the value's byte string on the one side, in place on the
// other.
void put_bits(std::string& frame, unsigned offset, const std::string& fixed, unsigned width) {
  const unsigned skip = static_cast<unsigned>(fixed.size()) * 8 - width;
  for (unsigned i = 0; i < width; ++i) {
    if (bit_at(fixed, skip + i)) {
      set_bit(frame, offset + i);
    }
  }
}

std::string take_bits(std::string_view frame, unsigned offset, unsigned width) {
  std::string fixed(byte_width(width), '\0');
  const unsigned skip = static_cast<unsigned>(fixed.size()) * 8 - width;
  for (unsigned i = 0; i < width; ++i) {
    if (bit_at(frame, offset + i)) {
      set_bit(fixed, skip + i);
    }
  }
  return fixed;
}

}  // namespace

std::string decode_packet_out(const p4::v1::PacketOut& packet, const Schema& schema) {
  const Header* header = schema.packet_header("packet_out");
  std::map<std::uint32_t, const std::string*> values;
  for (const auto& metadata : packet.metadata()) {
    if (!values.emplace(metadata.metadata_id(), &metadata.value()).second) {
      throw invalid_argument("packet-out metadata id " + std::to_string(metadata.metadata_id()) +
                             " is given twice");
    }
  }
  const Layout& layout = schema.packet_layout("packet_out");
  std::string frame(byte_width(header_bits(layout)), '\0');
  unsigned offset = 0;
  for (const auto& place : layout) {
    if (const auto* field = find_field(header, place.id)) {
      const Where where{"controller header", "packet_out", "field", field->name()};
      const auto value = values.extract(field->id());
      if (value.empty()) {
        throw invalid_argument(where.text() + " is missing in the packet-out's metadata");
      }
      require_bits(field->bitwidth(), where);
      put_bits(frame, offset, to_fixed(*value.mapped(), place.width, where), place.width);
    }
    offset += place.width;
  }
  if (!values.empty()) {
    throw invalid_argument("packet-out metadata id " + std::to_string(values.begin()->first) +
                           " is not in the controller header \"packet_out\"");
  }
  return frame + packet.payload();
}

p4::v1::PacketIn encode_packet_in(std::string_view frame, const Schema& schema) {
  p4::v1::PacketIn packet;
  const Header* header = schema.packet_header("packet_in");
  const Layout& layout = schema.packet_layout("packet_in");
  std::size_t bytes = byte_width(header_bits(layout));
  if (frame.size() < bytes) {
    bytes = 0;
  } else {
    unsigned offset = 0;
    for (const auto& place : layout) {
      if (find_field(header, place.id) != nullptr) {
        auto& metadata = *packet.add_metadata();
        metadata.set_metadata_id(place.id);
        metadata.set_value(to_canonical(take_bits(frame, offset, place.width)));
      }
      offset += place.width;
    }
  }
  packet.set_payload(std::string(frame.substr(bytes)));
  return packet;
}

}  // namespace catchment::server
