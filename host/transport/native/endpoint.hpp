// A member of a job on this machine: its port, and the thread that runs it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "member.hpp"
#include "poller.hpp"
#include "port.hpp"
#include "request.hpp"
#include "stats.hpp"

namespace catchment::host {

class Endpoint {
 public:
  // Starts the thread.  Throws std::system_error, EMSGSIZE when a frame does not fit the path.
  Endpoint(EndpointConfig config, std::unique_ptr<Port> port);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  // Any thread may call push and pull.  A request made on a failed or closed endpoint is returned
  // failed.
  std::shared_ptr<Request> push(Memory memory, Scaling scaling);
  std::shared_ptr<Request> pull(Memory memory, Scaling scaling);
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

  std::shared_ptr<Request> submit(bool is_push, Memory memory, Scaling scaling);
  Failure refuse(std::string message, std::string kind, std::string hint) const;

  // Has the I/O thread look at the commands.
  void call();

  // All below run on the I/O thread.
  void run();
  void serve();
  void take_commands(Nanos now);
  void supervise(Nanos now);

  EndpointConfig config_;
  Stats stats_;
  std::unique_ptr<Port> port_;
  Poller poller_;
  Member member_;
  bool closing_ = false;

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
