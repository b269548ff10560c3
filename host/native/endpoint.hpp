// One member of a job: a socket, at most one stream out and one in, and the thread that moves them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "frame_check.hpp"
#include "poller.hpp"
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

class Endpoint {
 public:
  // Starts the thread.  Throws std::system_error, EMSGSIZE when a frame does not fit the path.
  Endpoint(EndpointConfig config, std::unique_ptr<Port> port);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  // From any thread.  A request made on a failed or closed endpoint is returned failed.
  std::shared_ptr<Request> push(Memory memory, int exponent);
  std::shared_ptr<Request> pull(Memory memory);
  std::optional<Failure> failure() const;
  std::vector<Stall> stalled() const;
  // Fails what is pending, answers retransmissions until quiet or for `linger`, and stops.
  void close(Nanos linger);

  const Stats& stats() const { return stats_; }
  // Processor time that the I/O thread has used.
  Nanos processor_time();
  const EndpointConfig& config() const { return config_; }

 private:
  struct Command {
    bool is_push;
    std::shared_ptr<Request> request;
  };

  std::shared_ptr<Request> submit(bool is_push, Memory memory, int exponent);
  Failure refuse(std::string message, std::string kind, std::string hint) const;

  // Has the I/O thread look at the commands.
  void call();

  // All below run on the I/O thread.
  void run();
  void serve();
  void take_commands(Nanos now);
  void receive(Nanos now);
  std::optional<Reject> on_frame(std::span<const std::uint8_t> frame, Nanos now);
  bool transmit(Nanos now);
  void supervise(Nanos now);
  void fail_everything(const Failure& failure, Nanos now);
  bool lingering(Nanos now);
  Nanos deadline() const;

  EndpointConfig config_;
  Stats stats_;
  std::unique_ptr<Port> port_;
  Poller poller_;
  std::optional<Transmitter> out_;
  std::optional<Receiver> in_;
  std::optional<Acceptance> out_accepts_;
  std::optional<Acceptance> in_accepts_;
  Watchdog watchdog_;
  Contact contact_;
  bool blocked_ = false;  // the socket took no more
  std::optional<Nanos> blocked_since_;
  bool dead_ = false;  // failed: only close() is left
  std::optional<Nanos> closing_at_;

  std::atomic<int> called_{0};  // commands wait
  mutable std::mutex mutex_;    // guards what follows
  std::vector<Command> commands_;
  std::optional<Failure> failure_;
  std::vector<Stall> stalls_;
  std::optional<Nanos> linger_;  // close() was called

  std::mutex joining_;  // guards what follows
  std::thread thread_;
};

}  // namespace catchment::host
