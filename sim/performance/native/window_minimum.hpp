// The merged heartbeat of a switch: the serial minimum of what every member has said. Members move
// in step, so the minimum is searched for only when the last of those that held it moves on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "catchment/common/serial.hpp"
#include "state_hash.hpp"

namespace catchment::performance {

// The least of the members' values, each of which only grows.
class SerialMinimum {
 public:
  void resize(std::size_t members) { values_.resize(members); }

  void start(std::uint32_t member, Seq value) { values_[member] = value; }
  void raise(std::uint32_t member, Seq value) {
    const Seq held = values_[member];
    if (!newer(value, held)) return;
    values_[member] = value;
    if (held == least_ && --holders_ == 0) search();
  }
  [[nodiscard]] Seq least() const { return least_; }
  [[nodiscard]] Seq of(std::uint32_t member) const { return values_[member]; }
  // So many frames further, all of them.
  void skip(std::uint32_t frames) {
    for (Seq& value : values_) value += frames;
    least_ += frames;
  }

  // Finds the minimum; before the first call there is none.
  void search() {
    least_ = values_.front();
    for (const Seq value : values_) least_ = earlier(least_, value);
    holders_ = static_cast<std::size_t>(std::count(values_.begin(), values_.end(), least_));
  }

 private:
  std::vector<Seq> values_;
  Seq least_ = 0;
  std::size_t holders_ = ~std::size_t{0};  // how many members hold it
};

class WindowMinimum {
 public:
  explicit WindowMinimum(std::size_t members) : heard_(members, false) {
    ack_.resize(members);
    credit_.resize(members);
  }

  void hear(std::uint32_t member, Seq ack, Seq credit) {
    if (heard_[member]) {
      ack_.raise(member, ack);
      credit_.raise(member, credit);
      return;
    }
    heard_[member] = true;
    ack_.start(member, ack);
    credit_.start(member, credit);
    if (++count_ != heard_.size()) return;
    ack_.search();
    credit_.search();
  }

  // Every member has spoken.
  [[nodiscard]] bool complete() const { return count_ == heard_.size(); }
  [[nodiscard]] Seq ack() const { return ack_.least(); }
  [[nodiscard]] Seq credit() const { return credit_.least(); }

  // Whether the minimum has moved since this was last true; only when complete.
  bool moved() {
    if (told_ && !newer(ack(), told_ack_) && !newer(credit(), told_credit_)) return false;
    told_ = true;
    told_ack_ = ack();
    told_credit_ = credit();
    return true;
  }

  void hash(StateHash& state, std::uint32_t stream) const {
    state.number(count_);
    for (std::uint32_t member = 0; member < heard_.size(); ++member) {
      state.number(heard_[member] ? 1 : 0);
      if (!heard_[member]) continue;
      state.seq(stream, ack_.of(member));
      state.seq(stream, credit_.of(member));
    }
    state.number(told_ ? 1 : 0);
    if (!told_) return;
    state.seq(stream, told_ack_);
    state.seq(stream, told_credit_);
  }
  // The stream is so many frames further; what nobody has said stays unsaid.
  void skip(std::uint32_t frames) {
    ack_.skip(frames);
    credit_.skip(frames);
    told_ack_ += frames;
    told_credit_ += frames;
  }

 private:
  std::vector<bool> heard_;
  std::size_t count_ = 0;
  SerialMinimum ack_;
  SerialMinimum credit_;
  bool told_ = false;
  Seq told_ack_ = 0;
  Seq told_credit_ = 0;
};

}  // namespace catchment::performance
