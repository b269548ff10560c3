// The slots of one stream in one switch: whose vectors are in, and what they add up to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "catchment/common/serial.hpp"
#include "state_hash.hpp"

namespace catchment::performance {

class SlotTable {
 public:
  // slots: a power of two. base: the stream's first sequence number.
  SlotTable(std::size_t members, std::size_t slots, Seq base)
      : members_(members),
        words_((members + 63) / 64),
        mask_(static_cast<std::uint32_t>(slots - 1)),
        slots_(slots, Slot{base - 1, 0, 0}),
        present_(slots * words_, 0) {}

  enum class Outcome : std::uint8_t {
    kOld,       // the slot has gone on
    kBeyond,    // further than a sender may be
    kWaiting,   // somebody is missing
    kComplete,  // this was the last one
    kAgain,     // complete, and this member was in already
  };

  // furthest: the last number that a sender may be at, if the switch knows it.
  Outcome add(Seq seq, std::uint32_t member, std::uint32_t value, std::optional<Seq> furthest) {
    Slot& slot = slots_[seq & mask_];
    if (furthest && seq != slot.tag) {
      if (newer(seq, *furthest)) return Outcome::kBeyond;
      if (newer(slot.tag, *furthest)) give_back(slot, seq - 1);
    }
    std::uint64_t* const present = &present_[(seq & mask_) * words_];
    if (newer(seq, slot.tag)) {
      if (slot.count == 0 || slot.count == members_) ++occupied_;
      slot = {seq, 0, 0};
      for (std::size_t word = 0; word < words_; ++word) present[word] = 0;
    } else if (seq != slot.tag) {
      return Outcome::kOld;
    }
    const std::uint64_t bit = std::uint64_t{1} << member % 64;
    if ((present[member / 64] & bit) != 0) {
      return slot.count == members_ ? Outcome::kAgain : Outcome::kWaiting;
    }
    present[member / 64] |= bit;
    slot.sum += value;
    if (++slot.count != members_) return Outcome::kWaiting;
    --occupied_;
    return Outcome::kComplete;
  }

  [[nodiscard]] std::uint32_t sum(Seq seq) const { return slots_[seq & mask_].sum; }
  // Slots that wait for somebody.
  [[nodiscard]] std::size_t occupied() const { return occupied_; }
  [[nodiscard]] std::size_t size() const { return slots_.size(); }

  void hash(StateHash& state, std::uint32_t stream) const {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      const std::uint32_t place = (state.base(stream) + i) & mask_;
      state.seq(stream, slots_[place].tag);
      state.number(slots_[place].count);
      for (std::size_t word = 0; word < words_; ++word) {
        state.number(present_[place * words_ + word]);
      }
    }
  }
  // The stream is so many frames further.
  void skip(std::uint32_t frames) {
    for (Slot& slot : slots_) slot.tag += frames;
    const auto moved = static_cast<std::ptrdiff_t>(frames & mask_);
    std::rotate(slots_.begin(), slots_.end() - moved, slots_.end());
    const auto words = static_cast<std::ptrdiff_t>(words_);
    std::rotate(present_.begin(), present_.end() - moved * words, present_.end());
  }

 private:
  struct Slot {
    Seq tag;
    std::uint32_t count;
    std::uint32_t sum;
  };

  // The slot was never rightly taken: it is as after `tag`.
  void give_back(Slot& slot, Seq tag) {
    if (slot.count != 0 && slot.count != members_) --occupied_;
    slot = {tag, 0, 0};
  }

  std::size_t members_;
  std::size_t words_;
  std::uint32_t mask_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> present_;
  std::size_t occupied_ = 0;
};

}  // namespace catchment::performance
