// All-reduce of a few vectors at the lowest latency, through p4sgd.p4 (P4SGD, Algorithm 3,
// corrected).
//
// There is no thread: the caller's own runs the protocol while it waits, polling for a while before
// it sleeps.  What the other workers may need meanwhile is never more than what the next call
// sends: no worker finishes a round without this worker's vector.  An acknowledgement therefore
// travels with the next vector, or when the caller waits or closes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catchment/common/patience.hpp"
#include "frame_check.hpp"
#include "port.hpp"
#include "request.hpp"
#include "slot_ring.hpp"
#include "stats.hpp"
#include "stream_config.hpp"

namespace catchment::host {

struct AllReducerConfig {
  StreamConfig stream;
  std::uint8_t wid = 0;
  std::string peer;  // the switch, for messages
  Nanos timeout = 0;
  Nanos spin = 0;  // see reducer_patience()
};

std::size_t longest_frame(const AllReducerConfig& config);

// One all-reduce; used again once it is done.
struct Reduction {
  Memory source;
  Memory target;  // of the same type and length; may be the same memory
  int exponent = 0;

  Outcome outcome;
  std::atomic<bool> done = true;

  // The reducer keeps these while the all-reduce runs.
  std::uint32_t begun = 0;  // vectors sent
  std::uint32_t taken = 0;  // sums received
  Nanos started = 0;
};

// A wait without progress.
struct Standstill {
  Nanos duration = 0;
  Seq seq = 0;  // of the oldest round
};

class AllReducer {
 public:
  // Throws std::system_error, EMSGSIZE when a frame does not fit the path.
  AllReducer(AllReducerConfig config, std::unique_ptr<Port> port);

  // Sends what the slots take now; the rest follows while the caller waits.  The reduction must be
  // done before it is started again.
  void start(const std::shared_ptr<Reduction>& reduction);
  // Runs the protocol until it is done, at most for `limit`; false when it is not done yet.
  bool wait(const Reduction& reduction, Nanos limit);
  // Fails what is pending and runs the protocol until the switch has confirmed all rounds, at most
  // for `linger`; the port is free afterwards.
  void close(Nanos linger);

  // Fails what is pending, from any thread; a caller that waits notices within a twentieth of a
  // second.
  void interrupt() { interrupted_ = true; }
  // What has not moved for `least` while a caller waited for it; any thread may ask.
  std::optional<Standstill> standstill(Nanos least) const;

  std::optional<Failure> failure() const;
  const Stats& stats() const { return stats_; }
  const AllReducerConfig& config() const { return config_; }

 private:
  struct Round {
    std::shared_ptr<Reduction> reduction;
    std::uint32_t index = 0;  // of the vector
  };

  std::uint32_t vectors(const Reduction& reduction) const;
  std::uint8_t* frame_of(Seq seq) { return &frames_[ring_.place(seq) * frame_bytes_]; }

  bool receive(Nanos now);
  std::optional<Reject> on_frame(std::span<const std::uint8_t> frame, Nanos now);
  void on_sum(const wire::Header& header, const std::uint8_t* lanes, Nanos now);
  void transmit(Nanos now);
  bool send_ack(Seq seq);
  bool send_vector(Seq seq, bool again);
  void prepare(Seq seq, Reduction& reduction, std::uint32_t index);
  // One turn of the protocol; sleeps once nothing has come for a while.  Returns when it began.
  Nanos turn(Nanos until);
  void sleep(Nanos until, Nanos now);
  void supervise(Nanos now);
  void fail_all(const Failure& failure, Nanos now);
  void fail_closed(const char* message, Nanos now);

  AllReducerConfig config_;
  Patience patience_;
  int headroom_;
  std::size_t frame_bytes_;
  std::unique_ptr<Port> port_;  // until it is closed
  SlotRing ring_;
  std::uint64_t used_ = 0;  // rounds of all reductions
  Stats stats_;
  std::vector<std::uint8_t> frames_;  // every round's vector as it is sent, until it is confirmed
  std::vector<Round> rounds_;         // by place
  std::vector<Seq> acks_;             // to be sent
  std::deque<std::shared_ptr<Reduction>> queue_;  // with vectors to send
  std::uint64_t heard_ = 0;                       // valid frames
  Nanos progressed_at_ = 0;
  Nanos left_at_ = 0;  // when the caller last stopped waiting
  Nanos quiet_since_ = 0;
  bool blocked_ = false;        // the port takes no more
  std::atomic<int> never_ = 0;  // stays 0: nothing stops the caller's own thread
  std::optional<Failure> failure_;
  std::atomic<bool> interrupted_ = false;
  std::atomic<Nanos> stands_since_ = 0;  // 0: no caller waits
  std::atomic<Seq> stands_at_ = 0;
  mutable std::mutex mutex_;  // one thread runs the protocol at a time
};

}  // namespace catchment::host
