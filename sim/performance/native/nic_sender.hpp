// The sending half of a NIC: the project's SenderWindow under the timer of rtl/transport.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sender_window.hpp"
#include "short_queue.hpp"
#include "state_hash.hpp"
#include "stream_shape.hpp"

namespace catchment::performance {

class NicSender {
 public:
  NicSender(const StreamShape& shape, const StreamTimers& timers, wire::PacketType type,
            std::uint32_t identity)
      : timers_(timers),
        shape_(shape),
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
    if (disturbed_ && !newer(*disturbed_, ack)) disturbed_.reset();
    while (!messages_.empty() && newer(window_.acked(), messages_.front().last)) {
      done.push_back(messages_.front().operation);
      messages_.pop_front();
    }
  }

  void on_missing(Seq seq) {
    window_.on_missing(seq);
    disturbed_ = window_.next();
  }

  // When the timer runs out, or kForever.
  [[nodiscard]] Picos deadline() const {
    return window_.outstanding() ? deadline_ : world::kForever;
  }
  void on_timeout(Picos now) {
    window_.on_timeout();
    disturbed_ = window_.next();
    rto_ = std::min(2 * rto_, timers_.rto_most);
    deadline_ = now + rto_ + timers_.resend_delay;
    ++timeouts_;
  }

  [[nodiscard]] std::uint64_t timeouts() const { return timeouts_; }
  [[nodiscard]] const host::SenderWindow& window() const { return window_; }

  // Whether no frame under way was asked for again: the window is then what its numbers say.
  [[nodiscard]] bool calm() const { return !disturbed_; }
  void hash(StateHash& state) const {
    const auto unsent =
        std::count_if(messages_.begin(), messages_.end(),
                      [this](const Message& one) { return !newer(window_.next(), one.last); });
    state.seq(shape_.stream, window_.acked());
    state.seq(shape_.stream, window_.next());
    state.seq(shape_.stream, window_.credit());
    state.number(messages_.size());
    state.number(static_cast<std::uint64_t>(unsent));
    state.number(static_cast<std::uint64_t>(rto_));
    state.number(timeouts_);
    if (window_.outstanding()) state.time(deadline_);
  }
  // New frames up to the last one of a message; 0 if the end of another is under way.
  [[nodiscard]] std::uint32_t room() const {
    if (messages_.empty() || newer(window_.next(), messages_.front().last)) return 0;
    return distance(window_.next(), messages_.front().last);
  }
  // So many frames were sent, and as many acknowledged; a calm window, and no more than room().
  void skip(Picos by, std::uint32_t frames) {
    deadline_ += by;
    if (frames == 0) return;
    const Seq base = window_.credit() + frames - shape_.window;
    host::SenderWindow moved(base, shape_.window, shape_.slots);
    moved.queue(distance(base, window_.end()));
    while (moved.next() != window_.next() + frames) moved.take();
    moved.on_ack(window_.acked() + frames, base + shape_.window);
    window_ = moved;
  }

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
  StreamShape shape_;
  wire::PacketType type_;
  std::uint32_t identity_;
  host::SenderWindow window_;
  ShortQueue<Message> messages_;  // not acknowledged yet
  Picos rto_;
  Picos deadline_ = 0;
  std::uint64_t timeouts_ = 0;
  std::optional<Seq> disturbed_;  // frames before it were asked for again and are under way
};

}  // namespace catchment::performance
