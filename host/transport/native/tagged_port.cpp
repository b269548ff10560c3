#include "tagged_port.hpp"

#include <algorithm>
#include <cstring>

#include "catchment/common/big_endian.hpp"
#include "wire.hpp"

namespace catchment::host {
namespace {

// Offsets in the header.
constexpr std::size_t kType = 0;  // lower half of the byte, under the version
constexpr std::size_t kGeneration = 2;
constexpr std::size_t kSeq = 10;
constexpr std::size_t kAck = 14;

// The number whose term says which key a frame has.
std::uint32_t term_number(const std::uint8_t* frame) {
  const auto type = static_cast<wire::PacketType>(frame[kType] & 0x0f);
  const bool word = type == wire::PacketType::kHB || type == wire::PacketType::kMH;
  const std::uint8_t* const at = frame + (word ? kAck : kSeq);
  return static_cast<std::uint32_t>(load16(at)) << 16 | load16(at + 2);
}

void set_version(std::uint8_t* frame, std::uint8_t version) {
  frame[0] = static_cast<std::uint8_t>(version << 4 | (frame[0] & 0x0f));
}

std::array<std::uint8_t, wire::kTagBytes> bytes_of(std::uint64_t tag) {
  const std::uint64_t swapped = __builtin_bswap64(tag);
  std::array<std::uint8_t, wire::kTagBytes> bytes;
  std::memcpy(bytes.data(), &swapped, bytes.size());
  return bytes;
}

}  // namespace

TaggedPort::TaggedPort(std::unique_ptr<Port> port, std::vector<StreamKeys> keys,
                       std::size_t frame_bytes)
    : port_(std::move(port)), keys_(std::move(keys)), longest_(frame_bytes + wire::kTagBytes) {}

std::size_t TaggedPort::path_bytes() const {
  const std::size_t bytes = port_->path_bytes();
  return bytes < wire::kTagBytes ? 0 : bytes - wire::kTagBytes;
}

const TagKey* TaggedPort::key_of(const std::uint8_t* frame) const {
  const std::uint16_t gen = load16(frame + kGeneration);
  const auto found = std::ranges::find(keys_, gen, &StreamKeys::first);
  return found == keys_.end() ? nullptr : &found->second->of(term_number(frame));
}

void TaggedPort::commit(std::size_t bytes, std::span<const std::uint8_t> rest) {
  std::ranges::copy(rest, room_ + bytes);
  const std::size_t all = bytes + rest.size();
  set_version(room_, wire::kTaggedVersion);
  const auto tag = bytes_of(frame_tag(*key_of(room_), {room_, all}));
  std::ranges::copy(tag, room_ + all);
  port_->commit(all + tag.size());
}

bool TaggedPort::is_right(const std::uint8_t* frame, std::size_t bytes) const {
  const TagKey* const key = key_of(frame);
  if (frame[0] >> 4 != wire::kTaggedVersion || key == nullptr) return false;
  const std::size_t content = bytes - wire::kTagBytes;
  const auto tag = bytes_of(frame_tag(*key, {frame, content}));
  std::uint8_t differs = 0;  // the time it takes says nothing of where
  for (std::size_t i = 0; i < tag.size(); ++i) differs |= tag[i] ^ frame[content + i];
  return differs == 0;
}

std::span<const std::span<const std::uint8_t>> TaggedPort::receive() {
  frames_.clear();
  const auto arrived = port_->receive();
  if (copies_.size() < arrived.size() * longest_) copies_.resize(arrived.size() * longest_);
  std::uint8_t* copy = copies_.data();
  for (const auto frame : arrived) {
    // What others may write to is copied first and judged then.
    const bool fits =
        frame.size() >= wire::kHeaderBytes + wire::kTagBytes && frame.size() <= longest_;
    if (fits) std::ranges::copy(frame, copy);
    if (!fits || !is_right(copy, frame.size())) {
      ++forged_;
      continue;
    }
    set_version(copy, wire::kVersion);
    frames_.emplace_back(copy, frame.size() - wire::kTagBytes);
    copy += longest_;
  }
  return frames_;
}

std::unique_ptr<Port> with_tags(std::unique_ptr<Port> port,
                                std::vector<std::pair<std::uint16_t, TagKey>> keys,
                                std::size_t frame_bytes) {
  std::vector<StreamKeys> lasting;
  for (const auto& [gen, key] : keys) {
    lasting.emplace_back(gen, std::make_shared<const TermKeys>(key));
  }
  return with_tags(std::move(port), std::move(lasting), frame_bytes);
}

std::unique_ptr<Port> with_tags(std::unique_ptr<Port> port, std::vector<StreamKeys> keys,
                                std::size_t frame_bytes) {
  if (keys.empty()) return port;
  return std::make_unique<TaggedPort>(std::move(port), std::move(keys), frame_bytes);
}

}  // namespace catchment::host
