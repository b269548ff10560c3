// The other end of a port shm:PATH of another switch of this machine: a cable between the two, in
// memory that both map (docs/explanation/shared-memory.md).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catchment/shm/channel.hpp"
#include "catchment/shm/connector.hpp"
#include "catchment/softswitch/status.hpp"
#include "port.hpp"

namespace catchment::softswitch {

class CablePort final : public Port {
 public:
  /// Asks the other switch for its port, again and again until it is there. Fails if that cannot
  /// help: the path is none.
  static Result<std::unique_ptr<Port>> open(const std::string& path, const PortContext& context);

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool up() const override { return channel_.has_value(); }
  [[nodiscard]] int descriptor() const override { return connector_.descriptor(); }
  Received receive(std::vector<rt::InputFrame>& frames) override;
  Sent send(std::span<const rt::OutFrame> frames) override;
  void show() override;
  std::string check_link() override;
  [[nodiscard]] bool polled() const override { return true; }
  bool arm() override;

 private:
  CablePort(const std::string& path, const PortContext& context);

  /// Takes the next step towards the other switch; returns what to tell the operator.
  std::string connect();
  /// Lets go of a switch that left or that corrupted its ring; returns what to tell the operator.
  std::string check_switch();

  std::string name_;
  PortContext context_;
  shm::Connector connector_;
  std::optional<shm::Channel> channel_;
  bool armed_ = false;
  std::string told_;                // why there is no switch: once for each reason
  std::atomic<bool> full_ = false;  // send() found no room
};

}  // namespace catchment::softswitch
