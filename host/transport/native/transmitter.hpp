// The push side of a stream: queued messages become frames, converted from the caller's buffer as
// they leave.  A retransmission converts again: nothing is kept beside the caller's buffer, which
// stays in place until the push is done anyway, so a window of any size costs no memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lane_format.hpp"
#include "port.hpp"
#include "request.hpp"
#include "retransmit_timer.hpp"
#include "sender_window.hpp"
#include "stats.hpp"
#include "stream_config.hpp"
#include "wire.hpp"

namespace catchment::host {

// Fields of a receiver that a peer's PA carries as well.
struct Piggyback {
  Seq ack = 0;
  Seq credit = 0;
};

// Why a push is not queued.
enum class Refusal : std::uint8_t {
  kFull,   // so many frames are queued that sequence numbers would be ambiguous
  kSpent,  // the stream's key does not serve for so many frames
};

class Transmitter {
 public:
  // type: kPA or kPARAM.
  Transmitter(const StreamConfig& config, wire::PacketType type, std::uint8_t wid, Stats& stats);

  // Queues a push; why it is not queued, if so.
  std::optional<Refusal> submit(std::shared_ptr<Request> request);

  // Stages frames while the window, the credit and the port allow, at most `budget`; returns how
  // many.
  std::size_t pump(Port& port, const std::optional<Piggyback>& piggyback, Nanos now,
                   std::size_t budget);

  // A heartbeat, or a sum with the same fields.  The reason when it is refused.
  std::optional<Reject> on_ack(const wire::Header& header, Nanos now);

  // The workers have agreed on the exponent of the next vector of the oldest block-scaled push.
  void on_agreed(std::int8_t exponent);

  // A frame that this endpoint lacks itself, as a receiver of the same stream.
  void on_missing(Seq seq) { window_.on_missing(seq); }

  void on_timer(Nanos now);
  Nanos deadline() const { return timer_.deadline(); }

  bool busy() const { return !pushes_.empty(); }
  // The time at which ma last moved, or work began.
  Nanos progressed_at() const { return progressed_at_; }
  const SenderWindow& window() const { return window_; }
  const std::string& name() const { return config_.name; }
  void fail_all(const Failure& failure, Nanos now);

 private:
  struct Push {
    std::shared_ptr<Request> request;
    Seq start;
    std::uint32_t frames;
    // Block-scaled: vectors of zeros before the data, whose next_exp is what the first vectors
    // need.
    std::uint32_t announcements = 0;
    std::vector<std::int8_t> agreed;  // exponents of the first vectors of data
  };

  const Push& owner(Seq seq);
  void hold_back();
  // What vector `index` of a message of floats needs.
  std::int8_t need(const Push& push, std::uint32_t index) const;
  std::size_t vector_elements(const Push& push, std::uint32_t index) const;
  void stage(std::uint8_t* room, const Transmission& transmission,
             const std::optional<Piggyback>& piggyback, Port& port);
  void complete(Nanos now);
  void note_stall(Nanos now);

  StreamConfig config_;
  wire::PacketType type_;
  std::uint8_t wid_;
  std::uint32_t per_frame_;  // elements
  LaneFormat lane_format_;
  Stats& stats_;
  SenderWindow window_;
  std::uint64_t used_ = 0;  // sequence numbers of all pushes
  RetransmitTimer timer_;
  std::deque<Push> pushes_;
  std::size_t cursor_ = 0;  // index of the push that was sent from last
  Nanos progressed_at_ = 0;
  std::optional<Nanos> starved_since_;
};

}  // namespace catchment::host
