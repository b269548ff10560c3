// Values for people and for the controller: log messages and digest members. Not for the fast path.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "catchment/softswitch/rt/bits.hpp"
#include "catchment/softswitch/rt/v1model.hpp"

namespace catchment::softswitch::rt {

/// Big-endian, shortest form, at least one byte.
template <unsigned W>
std::string digest_bytes(const bits<W>& value) {
  std::string bytes;
  for (unsigned i = (W + 7) / 8; i-- > 0;) {
    const auto byte = static_cast<char>(limb_of(value, i / 8) >> (8 * (i % 8)));
    if (byte != 0 || !bytes.empty() || i == 0) {
      bytes.push_back(byte);
    }
  }
  return bytes;
}

template <unsigned W>
std::string decimal(bits<W> value) {
  constexpr unsigned kWide = W < 8 ? 8 : W;
  auto rest = resize<kWide>(value);
  const auto ten = resize<kWide>(bits<8>(10));
  std::string digits;
  do {
    digits.push_back(static_cast<char>('0' + limb_of(mod<kWide>(rest, ten), 0)));
    rest = div<kWide>(rest, ten);
  } while (!(rest == bits<kWide>(0)));
  std::reverse(digits.begin(), digits.end());
  return digits;
}

/// log_msg(): each `{}` is replaced by the next value.
inline std::string log_text(const std::string& format, const std::vector<std::string>& values) {
  std::string text;
  std::size_t next = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format.compare(i, 2, "{}") == 0 && next < values.size()) {
      text += values[next++];
      ++i;
    } else {
      text.push_back(format[i]);
    }
  }
  return text;
}

/// The bytes of a bit string followed by the packet's payload.
inline std::span<const std::uint8_t> with_payload(PacketContext& packet, const std::uint8_t* data,
                                                  std::size_t size) {
  std::vector<std::uint8_t>& all = packet.engine.scratch;
  all.assign(data, data + size);
  all.insert(all.end(), packet.payload, packet.payload + packet.payload_length);
  return all;
}

}  // namespace catchment::softswitch::rt
