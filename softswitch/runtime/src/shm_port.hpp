// A port to a process of this machine, in memory that both map (docs/explanation/shared-memory.md).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/shm/bell.hpp"
#include "catchment/shm/channel.hpp"
#include "catchment/shm/listener.hpp"
#include "catchment/softswitch/status.hpp"
#include "port.hpp"

namespace catchment::softswitch {

/// PATH[,cells=N][,bytes=N][,mode=OCTAL]: what stands after shm: in a port's specification.
struct ShmTarget {
  std::string path;
  shm::Geometry geometry;
  ::mode_t mode = 0600;

  static Result<ShmTarget> parse(const std::string& text);
};

class ShmPort final : public Port {
 public:
  /// Listens for a peer. Fails with what is wrong with the target or its path.
  static Result<std::unique_ptr<Port>> open(const std::string& target, const PortContext& context);

  ~ShmPort() override;

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool up() const override { return channel_.has_value(); }
  [[nodiscard]] int descriptor() const override { return epoll_.get(); }
  Received receive(std::vector<rt::InputFrame>& frames) override;
  Sent send(std::span<const rt::OutFrame> frames) override;
  void show() override;
  std::string check_link() override;
  [[nodiscard]] bool polled() const override { return true; }
  bool arm() override;
  void keep_to_switch() override;

 private:
  ShmPort(const std::string& target, const ShmTarget& parsed, const PortContext& context);

  /// Attaches a peer: lets it into the data plane if it asks for it and may.
  std::optional<shm::Channel> attach(shm::AttachRequest request);
  bool may_enter(const shm::AttachRequest& request) const;
  /// Has rings in the memory of callers; false: there is no room for them.
  bool has_rings();
  std::optional<shm::Channel> let_in(shm::AttachRequest request);
  /// Nobody but the switch puts frames into the peer's ring from now on.
  void shut_out();
  void detach();
  /// Lets go of a peer that left or that corrupted its ring; returns what to tell the operator.
  std::string check_peer();
  /// Admits or refuses the peers that ask to attach; returns what to tell the operator.
  std::string answer();

  std::string name_;
  PortContext context_;
  shm::Geometry geometry_;
  FileDescriptor epoll_;  // over the listener and the peer's connection
  shm::Listener listener_;
  std::optional<shm::Channel> channel_;
  shm::PeerIdentity peer_;
  std::uint64_t epoch_ = 0;
  int told_ = 0;  // the listener's trouble that the operator knows of
  bool armed_ = false;
  bool through_switch_ = false;
  bool inside_ = false;      // the peer was let in
  bool lacks_room_ = false;  // it would have been, if there were room for its rings
  /// The rings of those that are. Never given back: a peer that has not heard of its end may write
  /// there.
  std::byte* rings_ = nullptr;
  std::optional<shm::Ringer> ringer_;
  std::atomic<bool> full_ = false;  // send() found no room
};

}  // namespace catchment::softswitch
