// A rank of an all-reduce stream for its callers: an engine, and the hub that runs it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine.hpp"
#include "hub.hpp"
#include "udp_address.hpp"

namespace catchment::host {

class Group {
 public:
  // On a port of its own.  spin: see collective_patience().
  Group(EngineConfig config, std::unique_ptr<Port> port, Nanos spin);
  // On the shared-memory port at `path`, which all groups of this process share that are on it;
  // waits up to `attach` for the switch.  Throws AttachError, std::invalid_argument where another
  // of them has the stream's generation, and std::system_error.
  Group(EngineConfig config, const std::string& path, const UdpAddress& local,
        const UdpAddress& peer, Nanos attach, Nanos spin);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  // Starts an operation; any thread may call it.  The order of the calls is that of the operations.
  std::shared_ptr<Operation> start(Call call);
  // Waits until the operation is done; false when that takes longer than `limit`.
  bool wait(const Operation& operation, Nanos limit);
  bool cancel(Operation& operation);
  std::optional<CollectiveFailure> failure();
  // Fails what is pending, serves the others until everything has arrived, at most for `linger`.
  void close(Nanos linger);

  const Stats& stats() const { return engine_->stats(); }
  const Layout& layout() const { return engine_->layout(); }

 private:
  std::shared_ptr<Hub> hub_;
  std::unique_ptr<Engine> engine_;
  std::mutex closing_;
  bool closed_ = false;
};

}  // namespace catchment::host
