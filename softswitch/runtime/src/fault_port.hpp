// A port of any kind with faults in front of it.
#pragma once

#include <memory>

#include "fault_lane.hpp"
#include "port.hpp"

namespace catchment::softswitch {

class FaultPort final : public Port {
 public:
  FaultPort(std::unique_ptr<Port> inner, std::uint32_t number);

  /// Starts the counters and the random sequences anew. No receive() or send() may run.
  void set(const PortFaults& faults);
  [[nodiscard]] const PortFaults& faults() const { return faults_; }
  [[nodiscard]] const FaultCounters& counters_in() const { return in_.counters(); }
  [[nodiscard]] const FaultCounters& counters_out() const { return out_.counters(); }

  /// The time at which receive(), called by its thread, hands on frames held on their way in.
  [[nodiscard]] FaultLane::Clock::time_point due_in() const { return in_.due(); }
  /// The time at which send(), even of no frame, hands on frames held on their way out.
  [[nodiscard]] FaultLane::Clock::time_point due_out() const {
    return unsent_.empty() ? out_.due() : retry_;
  }

  [[nodiscard]] const std::string& name() const override { return inner_->name(); }
  [[nodiscard]] bool up() const override { return inner_->up(); }
  [[nodiscard]] int descriptor() const override { return inner_->descriptor(); }
  Received receive(std::vector<rt::InputFrame>& frames) override;
  Sent send(std::span<const rt::OutFrame> frames) override;
  void show() override { inner_->show(); }
  std::string check_link() override { return inner_->check_link(); }
  [[nodiscard]] bool polled() const override { return inner_->polled(); }
  bool arm() override { return inner_->arm(); }
  void keep_to_switch() override { inner_->keep_to_switch(); }
  [[nodiscard]] PortIoStatistics io_statistics() const override { return inner_->io_statistics(); }

 private:
  void send_ready(FaultLane::Clock::time_point now, Sent& total);

  std::unique_ptr<Port> inner_;
  std::uint32_t number_;
  PortFaults faults_;

  FaultLane in_;
  std::vector<rt::InputFrame> raw_;
  std::vector<FaultLane::Bytes> passing_in_;

  FaultLane out_;
  std::vector<FaultLane::Bytes> passing_out_;
  std::vector<rt::OutFrame> ready_;
  /// What the port below had no room for; asked again at retry_.
  std::vector<std::vector<std::uint8_t>> unsent_;
  FaultLane::Clock::time_point retry_;
};

}  // namespace catchment::softswitch
