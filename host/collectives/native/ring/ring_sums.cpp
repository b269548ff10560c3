#include "ring_sums.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace catchment::host::ring {
namespace {

using wire::Flag;

constexpr std::uint32_t kTopsOfHalves = 0x80008000U;

// Adds lanes in network byte order, wrapping, as a switch does; `tops`: the bits that carry nothing
// into the next one.
void add_lanes(std::span<std::uint8_t> to, std::span<const std::uint8_t> more, std::uint32_t tops) {
  for (std::size_t at = 0; at + wire::kLaneBytes <= to.size(); at += wire::kLaneBytes) {
    std::uint32_t one = 0;
    std::uint32_t other = 0;
    std::memcpy(&one, &to[at], sizeof one);
    std::memcpy(&other, &more[at], sizeof other);
    one = __builtin_bswap32(one);
    other = __builtin_bswap32(other);
    one = __builtin_bswap32(((one & ~tops) + (other & ~tops)) ^ ((one ^ other) & tops));
    std::memcpy(&to[at], &one, sizeof one);
  }
}

bool flagged(const wire::Header& header, Flag flag) { return wire::has(header.flags, flag); }

void put(wire::Header& header, Flag flag, bool on) {
  const auto bit = static_cast<std::uint8_t>(flag);
  header.flags = static_cast<std::uint8_t>(on ? header.flags | bit : header.flags & ~bit);
}

// What the header of a sum says with one more vector in it; the rest is of the vector that came
// last, as at a switch.
wire::Header merged(const wire::Header& sum, const wire::Header& own) {
  wire::Header header = own;
  header.next_exp = std::max(sum.next_exp, own.next_exp);
  header.ack = earlier(sum.ack, own.ack);
  header.credit = earlier(sum.credit, own.credit);
  put(header, Flag::kEXPV, flagged(sum, Flag::kEXPV) && flagged(own, Flag::kEXPV));
  put(header, Flag::kACKV, flagged(sum, Flag::kACKV) && flagged(own, Flag::kACKV));
  put(header, Flag::kSAT, flagged(sum, Flag::kSAT) || flagged(own, Flag::kSAT));
  const bool packed = flagged(sum, Flag::kPACKED) || flagged(own, Flag::kPACKED);
  const bool all_packed = flagged(sum, Flag::kPACKED) && flagged(own, Flag::kPACKED);
  put(header, Flag::kPACKED, packed);
  put(header, Flag::kMIXED,
      packed && (!all_packed || flagged(sum, Flag::kMIXED) || flagged(own, Flag::kMIXED)));
  return header;
}

}  // namespace

RingSums::RingSums(const RingShape& shape, Sink& sink)
    : shape_(shape),
      sink_(sink),
      mask_(std::bit_ceil(shape.slots) - 1),
      slots_(mask_ + 1U),
      own_((mask_ + 1UL) * shape.lanes * wire::kLaneBytes),
      sums_(own_.size()) {}

std::span<std::uint8_t> RingSums::own_of(Seq seq) {
  const std::size_t bytes = shape_.lanes * wire::kLaneBytes;
  return {&own_[(seq & mask_) * bytes], bytes};
}

std::span<std::uint8_t> RingSums::sum_of(Seq seq) {
  const std::size_t bytes = shape_.lanes * wire::kLaneBytes;
  return {&sums_[(seq & mask_) * bytes], bytes};
}

RingSums::Slot* RingSums::claim(Seq seq) {
  Slot& slot = slots_[seq & mask_];
  if (slot.claimed && slot.seq == seq) return &slot;
  if (slot.claimed && newer(slot.seq, seq)) return nullptr;
  slot = Slot{.claimed = true, .seq = seq, .own_header = {}, .sum_header = {}};
  return &slot;
}

void RingSums::on_own(const wire::Header& header, std::span<const std::uint8_t> payload) {
  Slot* const slot = claim(header.seq);
  if (slot == nullptr) return;
  const bool again = slot->own;
  slot->own = true;
  slot->own_header = header;
  std::ranges::copy(payload, own_of(slot->seq).begin());
  if (slot->done) {
    sink_.deliver(slot->sum_header, sum_of(slot->seq));
  } else if (begins(slot->seq)) {
    begin(*slot);
  } else if (slot->held) {
    add(*slot);
  } else if (again) {
    sink_.pass_on({.kind = Kind::kAsk,
                   .origin = static_cast<std::uint8_t>(shape_.rank),
                   .hops = static_cast<std::uint8_t>(shape_.ranks - 1),
                   .header = header,
                   .payload = {}});
  }
}

void RingSums::begin(const Slot& slot) {
  sink_.pass_on({.kind = Kind::kPartial,
                 .hops = static_cast<std::uint8_t>(shape_.ranks - 1),
                 .header = slot.own_header,
                 .payload = own_of(slot.seq)});
}

void RingSums::add(Slot& slot) {
  slot.held = false;
  slot.sum_header = merged(slot.sum_header, slot.own_header);
  const bool packed = flagged(slot.own_header, Flag::kPACKED);
  add_lanes(sum_of(slot.seq), own_of(slot.seq), packed ? kTopsOfHalves : 0);
  if (!ends(slot.seq)) {
    sink_.pass_on({.kind = Kind::kPartial,
                   .hops = 0,
                   .header = slot.sum_header,
                   .payload = sum_of(slot.seq)});
    return;
  }
  slot.done = true;
  slot.sum_header.type = static_cast<std::uint8_t>(wire::PacketType::kFA);
  sink_.deliver(slot.sum_header, sum_of(slot.seq));
  send_sum(slot, shape_.ranks - 1);
}

void RingSums::send_sum(const Slot& slot, std::uint32_t hops) {
  if (hops == 0) return;
  sink_.pass_on({.kind = Kind::kSum,
                 .hops = static_cast<std::uint8_t>(hops),
                 .header = slot.sum_header,
                 .payload = sum_of(slot.seq)});
}

void RingSums::on_message(const Message& message) {
  if (message.kind == Kind::kAsk) {
    on_ask(message);
    return;
  }
  Slot* const slot = claim(message.header.seq);
  if (slot == nullptr) return;
  if (message.kind == Kind::kSum) {
    slot->done = true;
    slot->held = false;
    slot->sum_header = message.header;
    std::ranges::copy(message.payload, sum_of(slot->seq).begin());
    sink_.deliver(slot->sum_header, message.payload);
    send_sum(*slot, std::max<std::uint32_t>(message.hops, 1) - 1);
    return;
  }
  if (slot->done) {
    // The chain was begun again for a rank that lacks the sum.
    send_sum(*slot, shape_.ranks - 1);
    return;
  }
  slot->held = true;
  slot->sum_header = message.header;
  std::ranges::copy(message.payload, sum_of(slot->seq).begin());
  if (slot->own) add(*slot);
}

void RingSums::on_ask(const Message& message) {
  const Slot& slot = slots_[message.header.seq & mask_];
  const bool known = slot.claimed && slot.seq == message.header.seq;
  if (known && slot.done) {
    send_sum(slot, shape_.ranks - 1);
  } else if (begins(message.header.seq)) {
    if (known && slot.own) begin(slot);
  } else if (message.hops > 1) {
    Message further = message;
    --further.hops;
    sink_.pass_on(further);
  }
}

}  // namespace catchment::host::ring
