// One member of a job: at most one stream out and one in over a port.  It has neither a thread nor
// a clock: its caller, an Endpoint's thread or a simulation, passes the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frame_check.hpp"
#include "frame_tag.hpp"
#include "port.hpp"
#include "receiver.hpp"
#include "request.hpp"
#include "stats.hpp"
#include "stream_config.hpp"
#include "transmitter.hpp"
#include "watchdog.hpp"

namespace catchment::host {

enum class Role : std::uint8_t {
  kWorker,  // REDUCE sender, BCAST consumer
  kRoot,    // REDUCE consumer, BCAST sender
  kPeer,    // ALLREDUCE, both on one stream
};

struct EndpointConfig {
  Role role = Role::kWorker;
  std::optional<StreamConfig> out;
  std::optional<StreamConfig> in;
  std::uint8_t wid = 0;
  std::string peer;  // the switch, for messages
  Nanos timeout = 0;
};

// The longest frame that an endpoint with these streams sends or receives, and the largest window.
std::size_t longest_frame(const EndpointConfig& config);
std::size_t largest_window(const EndpointConfig& config);
// The keys of its streams, by generation.
std::vector<std::pair<std::uint16_t, TagKey>> keys_of(const EndpointConfig& config);

// What the watchdog saw.
struct Health {
  std::vector<Stall> stalls;
  std::optional<Failure> expired;
};

class Member {
 public:
  // Throws std::system_error, EMSGSIZE when a frame does not fit the path.
  Member(const EndpointConfig& config, Port& port, Stats& stats);
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // A member without such a stream must not be asked.  A push is failed when too many are queued.
  void push(std::shared_ptr<Request> request, Nanos now);
  void pull(std::shared_ptr<Request> request, Nanos now);

  // Takes what has arrived.
  void receive(Nanos now);
  // Sends what may go; true: there is more to send at once.
  bool transmit(Nanos now);
  // Looks whether anything moves, when it is time to; what has expired is the caller's to fail.
  std::optional<Health> supervise(Nanos now);
  // The time at which to call receive, transmit and supervise again although no frame has come.
  Nanos deadline() const;
  // The port took no more: transmit again when it does.
  bool blocked() const { return blocked_; }

  // Fails all that is pending; from now on it neither sends nor receives.
  void fail(const Failure& failure, Nanos now);
  bool dead() const { return dead_; }
  // Fails all that is pending, but answers others' retransmissions until quiet, or for `linger`.
  // Nothing may be pushed or pulled from then on.
  void close(const Failure& failure, Nanos linger, Nanos now);
  // Whether the time for answers after close() is over.
  bool closed(Nanos now) const;

 private:
  std::optional<Reject> on_frame(std::span<const std::uint8_t> frame, Nanos now);

  Role role_;
  std::string peer_;
  Port& port_;
  Stats& stats_;
  std::optional<Transmitter> out_;
  std::optional<Receiver> in_;
  std::optional<Acceptance> out_accepts_;
  std::optional<Acceptance> in_accepts_;
  Watchdog watchdog_;
  Contact contact_;
  bool blocked_ = false;  // the port took no more
  std::optional<Nanos> blocked_since_;
  bool dead_ = false;  // failed: only closing is left
  std::optional<Nanos> closing_at_;
};

}  // namespace catchment::host
