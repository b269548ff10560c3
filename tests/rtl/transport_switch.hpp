// The slow, obvious switch of docs/explanation/protocol.md for long runs keeps contributions and
// adds when asked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

using Bytes = std::vector<std::uint8_t>;

enum Type : std::uint8_t { kPA = 1, kFA = 2, kHB = 3, kMH = 4, kPARAM = 5 };
enum Flag : std::uint8_t { kACKV = 1, kRETX = 2, kLAST = 4, kEXPV = 8, kSAT = 16 };
enum Mode : std::uint8_t { kREDUCE = 1, kBCAST = 2, kALLREDUCE = 3 };

// Offsets in a frame.
constexpr std::size_t kOur = 42;
constexpr std::size_t kPayload = 64;

inline std::uint32_t get32(const Bytes& frame, std::size_t at) {
  return std::uint32_t{frame[at]} << 24 | std::uint32_t{frame[at + 1]} << 16 |
         std::uint32_t{frame[at + 2]} << 8 | frame[at + 3];
}

inline void put32(Bytes& frame, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) frame[at + i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

inline std::uint16_t get16(const Bytes& frame, std::size_t at) {
  return static_cast<std::uint16_t>(frame[at] << 8 | frame[at + 1]);
}

inline bool ahead(std::uint32_t a, std::uint32_t b) { return a != b && a - b < 0x8000'0000U; }

// The frame as it goes from the switch to the NIC on `port`; like the rest of this model, with no
// code of the host's or of the switch's own.
inline Bytes addressed(Bytes frame, std::uint32_t port) {
  const std::uint8_t to = static_cast<std::uint8_t>(port + 1);
  const std::uint8_t header[] = {0x02, 0, 0x0a, 0, 0, to, 0x02, 0, 0x0a, 0, 0, 0xfe};
  std::copy(std::begin(header), std::end(header), frame.begin());
  put32(frame, 26, 0x0a0000fe);
  put32(frame, 30, 0x0a000000U | to);
  frame[24] = frame[25] = 0;
  std::uint32_t sum = 0;
  for (std::size_t i = 14; i < 34; i += 2) sum += get16(frame, i);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = ~((sum & 0xffff) + (sum >> 16));
  frame[24] = static_cast<std::uint8_t>(sum >> 8);
  frame[25] = static_cast<std::uint8_t>(sum);
  return frame;
}

// One stream of a job in the switch; workers are ports 0 .. workers - 1.
class SwitchStream {
 public:
  SwitchStream(Mode mode, std::uint32_t workers, std::uint32_t slots, std::uint32_t root)
      : mode_(mode), workers_(workers), slots_(slots), root_(root), heard_(workers) {}

  // The control plane's next incarnation; slots and heartbeats keep what they hold.
  void generation(std::uint16_t gen) { gen_ = gen; }
  std::uint16_t generation() const { return gen_; }

  void restart() {
    slots_.assign(slots_.size(), {});
    heard_.assign(heard_.size(), {});
    last_ = {};
  }

  std::vector<std::pair<std::uint32_t, Bytes>> frame(std::uint32_t port, Bytes frame) {
    const auto type = frame[kOur] & 15U;
    if (port == root_) {
      if (mode_ == kREDUCE && type == kHB) return to_all(retyped(std::move(frame), kMH));
      if (mode_ == kBCAST && type == kPARAM) return to_all(std::move(frame));
      return {};
    }
    if (type == kPA && mode_ != kBCAST) return vector(port, std::move(frame));
    if (type == kHB && mode_ != kREDUCE) return heartbeat(port, std::move(frame));
    return {};
  }

 private:
  struct Slot {
    std::uint16_t gen = 0;
    std::uint32_t seq = 0;
    std::map<std::uint32_t, Bytes> contributions;
  };
  struct Window {
    std::uint16_t gen = 0;
    std::uint32_t ack = 0;
    std::uint32_t credit = 0;
  };
  using Output = std::vector<std::pair<std::uint32_t, Bytes>>;

  static Bytes retyped(Bytes frame, Type type) {
    frame[kOur] = static_cast<std::uint8_t>(0x10 | type);
    return frame;
  }

  Output to_all(const Bytes& frame) const {
    Output out;
    for (std::uint32_t port = 0; port < workers_; ++port) out.emplace_back(port, frame);
    return out;
  }

  static void put_window(Bytes& frame, const std::optional<Window>& window) {
    frame[kOur + 1] &= static_cast<std::uint8_t>(~kACKV);
    if (window) frame[kOur + 1] |= kACKV;
    put32(frame, kOur + 14, window ? window->ack : 0);
    put32(frame, kOur + 18, window ? window->credit : 0);
  }

  std::optional<Window> hear(std::uint32_t port, const Bytes& frame) {
    if ((frame[kOur + 1] & kACKV) != 0) {
      Window& held = heard_[port];
      const std::uint32_t ack = get32(frame, kOur + 14);
      const std::uint32_t credit = get32(frame, kOur + 18);
      if (held.gen != gen_) held = {gen_, ack, credit};
      if (ahead(ack, held.ack)) held.ack = ack;
      if (ahead(credit, held.credit)) held.credit = credit;
    }
    Window least = heard_[0];
    for (const Window& window : heard_) {
      if (window.gen != gen_) return std::nullopt;
      if (ahead(least.ack, window.ack)) least.ack = window.ack;
      if (ahead(least.credit, window.credit)) least.credit = window.credit;
    }
    return least;
  }

  Output heartbeat(std::uint32_t port, Bytes frame) {
    const auto least = hear(port, frame);
    if (!least) return {};
    const bool advanced =
        last_.gen != gen_ || ahead(least->ack, last_.ack) || ahead(least->credit, last_.credit);
    if (advanced) last_ = *least;
    const bool asks = mode_ == kBCAST && (frame[kOur + 1] & kRETX) != 0;
    if (!advanced && port != 0 && !asks) return {};
    put_window(frame, least);
    frame = retyped(std::move(frame), kMH);
    if (mode_ == kBCAST) return {{root_, std::move(frame)}};
    return to_all(frame);
  }

  Output vector(std::uint32_t port, Bytes frame) {
    const auto least = mode_ == kREDUCE ? std::optional<Window>{} : hear(port, frame);
    const std::uint32_t seq = get32(frame, kOur + 10);
    Slot& slot = slots_[seq % slots_.size()];
    if (slot.gen != gen_ || ahead(seq, slot.seq)) slot = {gen_, seq, {}};
    if (slot.seq != seq) return {};
    const bool again = !slot.contributions.try_emplace(port, frame).second;
    if (slot.contributions.size() != workers_) return {};
    Bytes sum = retyped(std::move(frame), kFA);
    std::uint8_t flags = sum[kOur + 1] & static_cast<std::uint8_t>(~(kEXPV | kSAT));
    bool valid = true;
    auto largest = static_cast<std::int8_t>(-128);
    std::fill(sum.begin() + kPayload, sum.end(), std::uint8_t{0});
    for (const auto& [worker, part] : slot.contributions) {
      valid = valid && (part[kOur + 1] & kEXPV) != 0;
      flags |= part[kOur + 1] & kSAT;
      largest = std::max(largest, static_cast<std::int8_t>(part[kOur + 9]));
      for (std::size_t at = kPayload; at < sum.size(); at += 4) {
        put32(sum, at, get32(sum, at) + get32(part, at));
      }
    }
    sum[kOur + 1] = flags | (valid ? kEXPV : 0);
    sum[kOur + 9] = static_cast<std::uint8_t>(largest);
    put_window(sum, least);
    if (mode_ == kREDUCE) return {{root_, std::move(sum)}};
    if (again) return {{port, std::move(sum)}};
    return to_all(sum);
  }

  Mode mode_;
  std::uint32_t workers_;
  std::vector<Slot> slots_;
  std::uint32_t root_;
  std::vector<Window> heard_;
  Window last_;
  std::uint16_t gen_ = 0;
};
