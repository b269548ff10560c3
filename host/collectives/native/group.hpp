// A rank of an all-reduce stream for its callers: an engine, and the hub that runs it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine.hpp"
#include "hub.hpp"
#include "term_keys.hpp"
#include "udp_address.hpp"

namespace catchment::host {

// A switch that knows a stream, as generation `gen` with tags under `keys`, and how to reach it: by
// the shared-memory port at `path`, or, where that is empty, by `port`, which is here while it is
// not in use and sees to the tags itself.
struct Way {
  std::uint16_t gen = 0;
  std::shared_ptr<const TermKeys> keys;
  std::string path;
  UdpAddress local;
  UdpAddress peer;
  std::unique_ptr<Port> port;
};

// `port` with tags under `keys`, if there are any, for the frames of a stream.
std::unique_ptr<Port> tagged(std::unique_ptr<Port> port, std::uint16_t gen,
                             std::shared_ptr<const TermKeys> keys, std::uint32_t lanes);

class Group {
 public:
  // On a port of its own.  spin: see collective_patience().
  Group(EngineConfig config, std::unique_ptr<Port> port, Nanos spin);
  // On the shared-memory port at `path`, which all groups of this process share that are on it;
  // waits up to `attach` for the switch, which without that may come later.  Throws AttachError,
  // std::invalid_argument where another of them has the stream's generation, and std::system_error.
  Group(EngineConfig config, const std::string& path, const UdpAddress& local,
        const UdpAddress& peer, std::optional<Nanos> attach, Nanos spin);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  // Starts an operation; any thread may call it.  The order of the calls is that of the operations.
  std::shared_ptr<Operation> start(Call call);
  // Waits until the operation is done; false when that takes longer than `limit`.
  // `spins`: as Hub::wait.
  bool wait(const Operation& operation, Nanos limit, bool spins = true);
  bool cancel(Operation& operation);
  std::optional<CollectiveFailure> failure();
  // Goes on by the way `to`, which is kept as `from` is given back; false where that cannot be.
  // One thread at a time.  A shared-memory port has to be that of another group of this process.
  bool move(Way& from, Way& to);
  // How long operations have waited without any sum.
  Nanos stalled_for();
  // As RollCall::missing, until now.
  std::optional<std::uint64_t> missing_ranks(Nanos since);
  // When a sum last came from the switch of the way that it goes now; 0 before the first.
  Nanos last_sum_at();
  // As Engine::all_heard_at.
  Nanos all_heard_at();
  // Whether this process runs the switch's program itself.
  bool inside();
  // The switch is known to be gone; for how long it has answered nothing.
  bool absent();
  Nanos away_for();
  // As Engine::key_due and Engine::take_key.
  std::uint64_t key_due();
  bool take_key(std::uint64_t term, const TagKey& key);
  // Fails what is pending and everything that comes.
  void fail(const CollectiveFailure& failure);
  // Fails what is pending, serves the others until everything has arrived, at most for `linger`.
  void close(Nanos linger);

  const Stats& stats() const { return engine_->stats(); }
  const Layout& layout() const { return engine_->layout(); }

 private:
  void say_farewell(Nanos until);
  std::shared_ptr<Hub> hub() const;
  // Calls `use` with the turn of the hub that runs the engine, and that hub.
  template <typename Use>
  auto with_turn(const Use& use) {
    while (true) {
      const std::shared_ptr<Hub> at = hub();
      const Hub::Turn turn(*at);
      if (at == hub()) return use(*at);
    }
  }
  // With the turns of both hubs.
  std::unique_ptr<Port> change(Hub& next, std::unique_ptr<Port> port, ShmShare* share,
                               std::uint16_t gen);

  mutable std::mutex placing_;  // of hub_
  std::shared_ptr<Hub> hub_;
  std::shared_ptr<Hub> own_hub_;  // where the engine is while it has a port of its own
  Nanos spin_;
  std::unique_ptr<Engine> engine_;
  std::mutex closing_;  // of close()
  std::mutex moving_;   // of move(), which may come while close() lingers
  bool closed_ = false;
};

}  // namespace catchment::host
