#include "frame_tag.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "wire.hpp"

namespace catchment::host {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kPaddedHeader = 24;
constexpr std::size_t kType = 0;  // lower half of the byte, under the version
constexpr std::size_t kWid = 4;

static_assert(std::endian::native == std::endian::little);

struct State {
  explicit State(const TagKey& key)
      : v0(key[0] ^ 0x736f6d6570736575U),
        v1(key[1] ^ 0x646f72616e646f6dU),
        v2(key[0] ^ 0x6c7967656e657261U),
        v3(key[1] ^ 0x7465646279746573U) {}

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }

  void add(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }

  std::uint64_t end() {
    v2 ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0 ^ v1 ^ v2 ^ v3;
  }

  std::uint64_t v0, v1, v2, v3;
};

std::uint64_t word_at(const std::uint8_t* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, kWord);
  return __builtin_bswap64(word);
}

}  // namespace

TagKey tag_key(std::span<const std::uint8_t, 16> bytes) {
  TagKey key;
  std::memcpy(key.data(), bytes.data(), bytes.size());
  return key;
}

std::uint64_t frame_tag(const TagKey& key, std::span<const std::uint8_t> frame) {
  State state(key);
  std::array<std::uint8_t, kPaddedHeader> header{};
  std::copy_n(frame.begin(), wire::kHeaderBytes, header.begin());
  const auto type = static_cast<wire::PacketType>(header[kType] & 0x0f);
  // A leaf writes its own number into the sums that it passes on; they are its parent's.
  if (type == wire::PacketType::kFA) header[kWid] = 0;
  for (std::size_t at = 0; at < header.size(); at += kWord) state.add(word_at(&header[at]));
  const auto payload = frame.subspan(wire::kHeaderBytes);
  std::size_t at = 0;
  for (; at + kWord <= payload.size(); at += kWord) state.add(word_at(&payload[at]));
  if (at < payload.size()) {
    std::array<std::uint8_t, kWord> rest{};
    std::copy(payload.begin() + static_cast<std::ptrdiff_t>(at), payload.end(), rest.begin());
    state.add(word_at(rest.data()));
  }
  state.add(static_cast<std::uint64_t>(kPaddedHeader + payload.size()) << 56);
  return state.end();
}

}  // namespace catchment::host
