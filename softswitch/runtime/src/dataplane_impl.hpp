// What a Dataplane owns; shared by the files that implement it.
#pragma once

#include <chrono>

#include "callers_door.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/packets.hpp"
#include "gate.hpp"
#include "replication_store.hpp"
#include "running_program.hpp"
#include "shared_state.hpp"
#include "state_memory.hpp"

namespace catchment::softswitch {

class Dataplane::Impl final : public Packets, public rt::Hooks {
 public:
  explicit Impl(DataplaneOptions given);
  ~Impl() override;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void process(std::span<const rt::InputFrame> frames, std::vector<rt::OutFrame>& out) override;
  void take_over(std::span<const PassedOn> passed, std::vector<rt::OutFrame>& out) override;
  void sent(std::uint32_t port, std::uint64_t packets, std::uint64_t bytes,
            std::span<const rt::OutFrame> frames) override;
  void dropped(std::uint32_t port, DropCause cause, std::span<const rt::OutFrame> frames) override;
  void count_drops(std::uint32_t port, DropCause cause, std::uint64_t packets) override;
  void digest(std::uint32_t digest_id, std::vector<std::string> members) override;
  void log(const std::string& message) override;
  void step_limit(std::uint32_t port, const char* where) override;

  void hand_to_cpu(const rt::OutFrame& frame, rt::Output& out);
  void run_batch(std::span<const rt::InputFrame> frames, rt::Output& out);
  [[nodiscard]] std::uint64_t now_us() const;
  /// Sets all registers to their initial values: somebody died in the middle of a frame.
  void repair();
  static Status not_loaded();

  const DataplaneOptions options;
  StateMemory memory;
  InState<SharedState> shared;  // the first that lies in the memory
  Gate gate;
  CallersDoor door;
  InState<rt::Random> random;
  StateArray<rt::ReplicaList> groups;
  StateArray<rt::CloneTarget> sessions;
  StateArray<rt::PortCounters> ports;
  StateArray<SharedRing> rings;
  rt::Engine engine;
  ReplicationStore replication;
  rt::Output packet_output;
  rt::Output inject_output;
  std::unique_ptr<RunningProgram> program;
  DownPorts down_ports;
  std::chrono::steady_clock::time_point started;
  std::function<void(PacketIn&&)> packet_in_hook;
  std::function<void(DigestMessage&&)> digest_hook;
  std::function<void(IdleNotification&&)> idle_hook;
  std::function<void(const std::string&)> log_hook;
  std::function<void(const std::string&)> step_limit_hook;
  std::uint64_t step_limit_told_us = 0;  // when the hook was last called; 0: never
  std::uint64_t step_limit_untold = 0;   // frames since then
};

}  // namespace catchment::softswitch
