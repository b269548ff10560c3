// The pull side of a stream: frames become the contents of posted buffers, in order.
//
// A frame that is next in order and has a buffer waiting is converted straight from the socket's
// batch into that buffer.  Everything else waits in a ring of D payloads, which the credit bounds.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "consumer_window.hpp"
#include "heartbeat.hpp"
#include "lane_format.hpp"
#include "port.hpp"
#include "request.hpp"
#include "stats.hpp"
#include "stream_config.hpp"
#include "transmitter.hpp"
#include "wire.hpp"

namespace catchment::host {

class Receiver {
 public:
  // type: kFA or kPARAM.
  Receiver(const StreamConfig& config, wire::PacketType type, std::uint8_t wid, Stats& stats);

  void submit(std::shared_ptr<Request> request, Nanos now);

  // A frame that frame_check has passed.  The reason when it is refused.
  std::optional<Reject> on_frame(const wire::Header& header, std::span<const std::uint8_t> payload,
                                 Nanos now);

  // Stages requests for missing frames, and a heartbeat if one is due, while the port has room.
  void beat(Port& port, Nanos now);
  Nanos deadline() const { return heartbeat_.deadline(); }

  // The oldest frame found missing and not asked for yet.
  std::optional<Seq> next_missing();

  // The exponents that the workers have agreed on since the last call, in order.
  std::vector<std::int8_t> take_agreed() { return std::exchange(agreed_, {}); }

  Piggyback piggyback() const { return {window_.ack(), window_.credit()}; }
  // A data frame carried the piggyback.
  void on_carried();

  bool busy() const { return !pulls_.empty(); }
  Nanos progressed_at() const { return progressed_at_; }
  // The time at which the last frame of this stream arrived, new or not.
  Nanos heard_at() const { return heard_at_; }
  const ConsumerWindow& window() const { return window_; }
  const std::string& name() const { return config_.name; }
  void fail_all(const Failure& failure, Nanos now);

 private:
  struct Frame {
    std::uint8_t flags = 0;
    std::uint8_t dtype = 0;
    std::int8_t exponent = 0;
    std::int8_t next_exponent = 0;
    std::uint16_t bytes = 0;
  };
  struct Pull {
    std::shared_ptr<Request> request;
    std::size_t done = 0;  // elements
    bool started = false;
    bool announced = false;  // the announcements of a block-scaled message have come
  };

  bool takes() const { return skipping_ || !pulls_.empty(); }
  void deliver(const Frame& frame, const std::uint8_t* payload, Nanos now);
  void fail_first(Failure failure, bool last, Nanos now);
  void place(Pull& pull, const Frame& frame, const std::uint8_t* payload);
  // The sum has other lanes than this stream.
  std::optional<Failure> other_lanes(const Frame& frame) const;
  std::optional<Failure> mismatch(const Pull& pull, const Frame& frame, std::size_t count) const;
  void drain(Nanos now);
  void note_missing(std::pair<Seq, Seq> skipped);
  void after_change(Nanos now);
  bool send_heartbeat(Port& port, std::optional<Seq> missing, Nanos now);

  StreamConfig config_;
  wire::PacketType type_;
  std::uint8_t wid_;
  LaneFormat lane_format_;
  Stats& stats_;
  ConsumerWindow window_;
  Heartbeat heartbeat_;
  std::size_t payload_bytes_;  // of a place in the ring
  std::vector<std::uint8_t> ring_;
  std::vector<Frame> frames_;
  std::deque<Pull> pulls_;
  std::vector<std::int8_t> agreed_;
  std::pair<Seq, Seq> missing_{};  // [first, last): may hold frames to ask for
  bool skipping_ = false;          // the rest of a message whose pull failed
  Nanos progressed_at_ = 0;
  Nanos heard_at_ = 0;
  std::optional<Nanos> full_since_;
};

}  // namespace catchment::host
