#include "passed_on.hpp"

#include <cstring>

namespace catchment::softswitch {

namespace {

template <class Number>
void append(std::string& to, Number number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Number>
bool take(std::span<const std::uint8_t>& from, Number& number) {
  if (from.size() < sizeof number) {
    return false;
  }
  std::memcpy(&number, from.data(), sizeof number);
  from = from.subspan(sizeof number);
  return true;
}

}  // namespace

std::string digest_bytes(const DigestMessage& message) {
  std::string out;
  append(out, message.digest_id);
  append(out, message.timestamp_ns);
  for (const std::string& member : message.members) {
    append(out, static_cast<std::uint32_t>(member.size()));
    out += member;
  }
  return out;
}

std::optional<DigestMessage> digest_in(std::span<const std::uint8_t> bytes) {
  DigestMessage out;
  if (!take(bytes, out.digest_id) || !take(bytes, out.timestamp_ns)) {
    return std::nullopt;
  }
  while (!bytes.empty()) {
    std::uint32_t size = 0;
    if (!take(bytes, size) || size > bytes.size()) {
      return std::nullopt;
    }
    out.members.emplace_back(reinterpret_cast<const char*>(bytes.data()), size);
    bytes = bytes.subspan(size);
  }
  return out;
}

}  // namespace catchment::softswitch
