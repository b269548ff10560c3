// A host whose member runs in software: the endpoint of host/ itself, on the simulation's time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "events.hpp"
#include "line_port.hpp"
#include "member.hpp"
#include "node.hpp"
#include "port.hpp"
#include "watch.hpp"

namespace catchment::cosim {

struct StackTiming {
  Picos receive = 0;            // from a frame's last bit until the program sees it
  Picos frame = 0;              // of processor per frame, in or out
  std::size_t ring_bytes = 0;   // that may wait for the line
  std::size_t ring_frames = 0;  // that may wait for the program; more are dropped
};

struct StackCounts {
  std::uint64_t damaged = 0;
  std::uint64_t overrun = 0;  // the program was too slow
};

class MemberNode final : public Node {
 public:
  MemberNode(World& world, StackTiming timing)
      : world_(world), source_(world.add_node()), timing_(timing) {}

  void attach(ProtocolLine& line);
  // Begins with these streams; a member that was there is forgotten.
  void join(const host::EndpointConfig& config, const host::UdpAddress& local,
            const host::UdpAddress& peer, Picos now);
  // The request; what it moves must stay in place until it is done.
  std::shared_ptr<host::Request> push(host::Memory memory, host::Scaling scaling, Picos now);
  std::shared_ptr<host::Request> pull(host::Memory memory, host::Scaling scaling, Picos now);
  std::shared_ptr<Watch> watch(std::shared_ptr<host::Request> request);
  [[nodiscard]] std::size_t waiting() const { return watches_.size(); }

  void on_frame(std::uint32_t port, Arrival&& arrival) override;
  void on_time(Picos now) override;

  [[nodiscard]] const host::Stats& stats() const { return *stats_; }
  [[nodiscard]] const StackCounts& counts() const { return counts_; }
  // Why it gave up, if it did.
  [[nodiscard]] const std::optional<host::Failure>& failure() const { return failure_; }

 private:
  host::Member& member();
  void serve(Picos now);
  void wake(Picos at);

  World& world_;
  std::uint32_t source_;
  StackTiming timing_;
  StackCounts counts_;
  ProtocolLine* line_ = nullptr;
  std::unique_ptr<host::Stats> stats_ = std::make_unique<host::Stats>();
  std::unique_ptr<host::Port> port_;  // with tags around `line_port_` where its streams have keys
  LinePort* line_port_ = nullptr;
  std::unique_ptr<host::Member> member_;
  std::optional<host::Failure> failure_;
  std::deque<std::pair<Picos, std::shared_ptr<const Bytes>>> arriving_;  // when the program sees it
  Picos busy_until_ = 0;
  std::uint64_t handled_ = 0;  // frames
  std::optional<Picos> next_wake_;
  std::vector<std::pair<std::shared_ptr<host::Request>, std::shared_ptr<Watch>>> watches_;
};

}  // namespace catchment::cosim
