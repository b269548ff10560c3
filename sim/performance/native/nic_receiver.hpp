// The receiving half of a NIC: the project's ConsumerWindow under the heartbeats of rtl/transport.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "consumer_window.hpp"
#include "short_queue.hpp"
#include "state_hash.hpp"
#include "stream_shape.hpp"

namespace catchment::performance {

class NicReceiver {
 public:
  NicReceiver(const StreamShape& shape, const StreamTimers& timers)
      : window_(shape.base, shape.window),
        last_(window_.places(), false),
        depth_(shape.window),
        interval_(timers.heartbeat),
        said_ack_(shape.base),
        said_credit_(shape.base + shape.window),
        highest_(shape.base) {}

  // A message is to be taken; `operation` is done when its last frame is in memory.
  void pull(std::uint32_t operation, std::vector<std::uint32_t>& done) {
    pulls_.push_back(operation);
    drain(done);
  }

  // Operations whose last frame has now been handed over are appended to `done`. Returns whether
  // the frame was new.
  bool on_data(const Frame& frame, std::vector<std::uint32_t>& done) {
    const host::Arrival arrival = window_.classify(frame.seq);
    if (arrival == host::Arrival::kDuplicate) repeat_ = true;
    if (arrival == host::Arrival::kDuplicate || arrival == host::Arrival::kOutside) return false;
    const bool last = wire::has(frame.flags, wire::Flag::kLAST);
    last_[window_.place(frame.seq)] = last;
    flush_ = flush_ || last;
    highest_ = later(highest_, frame.seq + 1);
    const auto skipped = window_.hold(frame.seq);
    for (Seq seq = skipped.first; seq != skipped.second; ++seq) missing_.push_back(seq);
    digest_ += (2 * frame.seq + 1) * frame.sum;
    ++received_;
    drain(done);
    return true;
  }

  // A frame to ask for.
  std::optional<Seq> next_missing() {
    while (!missing_.empty()) {
      const Seq seq = missing_.front();
      missing_.pop_front();
      if (window_.missing(seq)) return seq;
    }
    return std::nullopt;
  }

  // A heartbeat is due.
  [[nodiscard]] bool due() const { return elapsed_ || repeat_ || (changed() && eager()); }
  // A data frame that carries ack and credit may take its place.
  [[nodiscard]] bool optional() const { return !elapsed_; }
  void on_interval() { elapsed_ = true; }
  // When the next one is due at the latest.
  [[nodiscard]] Picos deadline() const { return next_; }

  void on_heartbeat(Picos now) {
    on_carried();
    elapsed_ = false;
    next_ = now + interval_;
  }
  // Ack and credit have left in a data frame.
  void on_carried() {
    said_ack_ = window_.ack();
    said_credit_ = window_.credit();
    flush_ = repeat_ = false;
  }

  void write_window(Frame& frame) const {
    frame.ack = window_.ack();
    frame.credit = window_.credit();
    frame.flags |= static_cast<std::uint8_t>(wire::Flag::kACKV);
  }

  [[nodiscard]] const host::ConsumerWindow& window() const { return window_; }
  // Of the sums that have come, with their places: what was added up decides it.
  [[nodiscard]] std::uint32_t digest() const { return digest_; }
  [[nodiscard]] std::uint64_t received() const { return received_; }

  // Whether no frame is missing before one that is here.
  [[nodiscard]] bool calm() const { return missing_.empty() && highest_ == window_.ack(); }
  // Whether all that is here has been handed over.
  [[nodiscard]] bool drained() const { return !window_.ready(); }
  void hash(StateHash& state, std::uint32_t stream) const {
    for (const Seq seq : {window_.ack(), window_.consumed(), said_ack_, said_credit_}) {
      state.seq(stream, seq);
    }
    state.number((elapsed_ ? 1U : 0U) | (flush_ ? 2U : 0U) | (repeat_ ? 4U : 0U));
    if (!elapsed_) state.time(next_);
    state.number(pulls_.size());
  }
  // So many frames have come, while it was calm and drained.
  void skip(Picos by, std::uint32_t frames) {
    next_ += by;
    if (frames == 0) return;
    window_ = host::ConsumerWindow(window_.ack() + frames, depth_);
    said_ack_ += frames;
    said_credit_ += frames;
    highest_ += frames;
    received_ += frames;
  }

 private:
  [[nodiscard]] bool changed() const {
    return window_.ack() != said_ack_ || window_.credit() != said_credit_;
  }
  [[nodiscard]] bool eager() const {
    const bool much = distance(said_ack_, window_.ack()) >= depth_ / 4 ||
                      distance(said_credit_, window_.credit()) >= depth_ / 4;
    return much || highest_ == said_credit_ || flush_;
  }

  void drain(std::vector<std::uint32_t>& done) {
    while (window_.ready() && !pulls_.empty()) {
      if (last_[window_.place(window_.consumed())]) {
        done.push_back(pulls_.front());
        pulls_.pop_front();
      }
      window_.consume();
    }
  }

  host::ConsumerWindow window_;
  std::vector<bool> last_;  // by place: the frame ends a message
  std::uint32_t depth_;
  Picos interval_;
  Seq said_ack_;
  Seq said_credit_;
  Seq highest_;          // one past the last frame that has arrived
  bool elapsed_ = true;  // the first is due at once: a switch merges only what it has heard
  bool flush_ = false;
  bool repeat_ = false;
  Picos next_ = 0;
  ShortQueue<Seq> missing_;
  ShortQueue<std::uint32_t> pulls_;
  std::uint32_t digest_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace catchment::performance
