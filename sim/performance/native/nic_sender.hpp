// The sending half of a NIC: the project's SenderWindow under the timer of rtl/transport.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sender_window.hpp"
#include "stream_shape.hpp"

namespace catchment::performance {

class NicSender {
 public:
  NicSender(const StreamShape& shape, const StreamTimers& timers, wire::PacketType type,
            std::uint32_t identity)
      : timers_(timers),
        type_(type),
        identity_(identity),
        window_(shape.base, shape.window, shape.slots),
        rto_(timers.rto) {}

  // What stands for the values that a member contributes to a sequence number.
  static constexpr std::uint32_t contribution(std::uint32_t identity, Seq seq) {
    return (seq * 0x9E3779B1U ^ (identity + 1) * 0x85EBCA6BU) * 0xC2B2AE35U;
  }

  // A message is in the ring; `operation` is done when everybody has it.
  void queue(std::uint32_t frames, std::uint32_t operation) {
    window_.queue(frames);
    messages_.push_back({window_.end() - 1, operation});
  }

  // The next data frame, if one may leave.
  std::optional<Frame> take(Picos now) {
    const bool outstanding = window_.outstanding();
    const auto next = window_.take();
    if (!next) return std::nullopt;
    if (!outstanding) restart(now);
    Frame frame;
    frame.seq = next->seq;
    frame.type = type_;
    frame.sum = contribution(identity_, next->seq);
    if (next->again) frame.flags |= static_cast<std::uint8_t>(wire::Flag::kRETX);
    if (ends_message(next->seq)) frame.flags |= static_cast<std::uint8_t>(wire::Flag::kLAST);
    return frame;
  }

  // Operations that this has brought to their end are appended to `done`.
  void on_ack(Seq ack, Seq credit, Picos now, std::vector<std::uint32_t>& done) {
    if (window_.on_ack(ack, credit) != host::AckOutcome::kAdvanced) return;
    restart(now);
    while (!messages_.empty() && newer(window_.acked(), messages_.front().last)) {
      done.push_back(messages_.front().operation);
      messages_.pop_front();
    }
  }

  void on_missing(Seq seq) { window_.on_missing(seq); }

  // When the timer runs out, or kForever.
  [[nodiscard]] Picos deadline() const {
    return window_.outstanding() ? deadline_ : world::kForever;
  }
  void on_timeout(Picos now) {
    window_.on_timeout();
    rto_ = std::min(2 * rto_, timers_.rto_most);
    deadline_ = now + rto_ + timers_.resend_delay;
    ++timeouts_;
  }

  [[nodiscard]] std::uint64_t timeouts() const { return timeouts_; }
  [[nodiscard]] const host::SenderWindow& window() const { return window_; }

 private:
  struct Message {
    Seq last;
    std::uint32_t operation;
  };

  void restart(Picos now) {
    rto_ = timers_.rto;
    deadline_ = now + rto_ + timers_.resend_delay;
  }

  [[nodiscard]] bool ends_message(Seq seq) const {
    const Seq acked = window_.acked();
    const auto found = std::lower_bound(
        messages_.begin(), messages_.end(), distance(acked, seq),
        [acked](const Message& one, std::uint32_t at) { return distance(acked, one.last) < at; });
    return found != messages_.end() && found->last == seq;
  }

  StreamTimers timers_;
  wire::PacketType type_;
  std::uint32_t identity_;
  host::SenderWindow window_;
  std::deque<Message> messages_;  // not acknowledged yet
  Picos rto_;
  Picos deadline_ = 0;
  std::uint64_t timeouts_ = 0;
};

}  // namespace catchment::performance
