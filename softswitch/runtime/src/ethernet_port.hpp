// A port on a network interface, through AF_PACKET. Follows its interface: one that is removed and
// comes back under its name is served again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "packet_socket.hpp"
#include "port.hpp"

namespace catchment::softswitch {

class EthernetPort final : public Port {
 public:
  /// Needs CAP_NET_RAW; the interface must exist.
  static Result<std::unique_ptr<Port>> open(const std::string& interface,
                                            const PortContext& context);

  [[nodiscard]] const std::string& name() const override { return interface_; }
  [[nodiscard]] bool up() const override { return up_; }
  [[nodiscard]] int descriptor() const override { return socket_ ? socket_->descriptor() : -1; }
  Received receive(std::vector<rt::InputFrame>& frames) override;
  Sent send(std::span<const rt::OutFrame> frames) override;
  std::string check_link() override;
  [[nodiscard]] PortIoStatistics io_statistics() const override;

 private:
  EthernetPort(std::string interface, const PortContext& context, PacketSocket socket);
  /// Whether the interface that the socket is bound to is up and has a carrier.
  [[nodiscard]] bool interface_up() const;

  std::string interface_;
  PortContext context_;
  std::optional<PacketSocket> socket_;
  bool up_ = false;
  std::string reopen_failure_;  // said once
  mutable std::atomic<std::uint64_t> missed_{0};
  bool warned_checksums_ = false;
  bool warned_length_ = false;
  bool logged_plain_ = false;
};

}  // namespace catchment::softswitch
