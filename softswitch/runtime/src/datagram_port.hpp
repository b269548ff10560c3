// A port to one UDP address, through a socket of this host: what the program sends there leaves as
// a datagram, and what comes from there reaches the program as a frame. It needs no privilege, so a
// switch between the processes of a host can be below a switch of the network.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/softswitch/status.hpp"
#include "port.hpp"
#include "udp_frame.hpp"

namespace catchment::softswitch {

/// LOCAL,PEER[,as=ADDRESS][,shared], each IP:PORT: what stands after udp: in a port's
/// specification.
struct DatagramTarget {
  sockaddr_in local{};
  sockaddr_in peer{};
  sockaddr_in shown{};  // where frames from the peer say that they go: LOCAL unless given
  bool shared = false;  // other ports have LOCAL, too, with other peers

  static Result<DatagramTarget> parse(const std::string& text);
};

class DatagramPort final : public Port {
 public:
  /// Binds LOCAL. Fails with what is wrong with the target, or what the system says.
  static Result<std::unique_ptr<Port>> open(const std::string& target, const PortContext& context);

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool up() const override { return true; }
  [[nodiscard]] int descriptor() const override { return socket_.get(); }
  Received receive(std::vector<rt::InputFrame>& frames) override;
  /// Refuses what is not UDP for PEER.
  Sent send(std::span<const rt::OutFrame> frames) override;
  std::string check_link() override;

 private:
  /// Ethernet, IPv4 and UDP before a datagram.
  static constexpr std::size_t kHeaderBytes = 42;

  DatagramPort(const std::string& target, const DatagramTarget& parsed, const PortContext& context,
               FileDescriptor socket);

  /// What of a frame goes into a datagram; empty if it is not UDP for the peer.
  [[nodiscard]] std::span<std::uint8_t> payload_of(const rt::OutFrame& frame) const;

  std::string name_;
  PortContext context_;
  FileDescriptor socket_;
  sockaddr_in peer_;
  std::array<std::uint8_t, kHeaderBytes> header_{};  // lengths and checksum are not in it
  std::size_t stride_;
  std::vector<std::uint8_t> in_;
  std::array<iovec, kBatch> in_parts_{};
  std::array<mmsghdr, kBatch> in_messages_{};
};

}  // namespace catchment::softswitch
