// Hosts whose endpoint is software: the project's own host::Member on the simulation's time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "member.hpp"
#include "nic_model.hpp"
#include "software_port.hpp"

namespace catchment::performance {

// As of the co-simulation's software hosts (docs/explanation/cosim.md).
struct SoftwareTiming {
  Picos receive = 0;            // from a frame's last bit until the program sees it
  Picos frame = 0;              // of processor for each frame, in or out
  std::size_t ring_bytes = 0;   // that may wait for the line
  std::size_t ring_frames = 0;  // that may wait for the program; more are dropped
};

// Members of these hosts have this bit in their numbers.
inline constexpr std::uint32_t kSoftware = 1U << 31U;

class SoftwareModel {
 public:
  explicit SoftwareModel(Fabric& fabric) : fabric_(fabric) {}

  std::uint32_t add_host(const SoftwareTiming& timing);
  std::uint32_t add_member(std::uint32_t host, Part part, const StreamShape& shape,
                           wire::PacketType type, std::uint32_t identity, std::uint32_t wid);
  void plug_in(std::uint32_t member, const Outlet& out) { at(member).port->plug_in(out); }
  void start();

  void push(std::uint32_t member, std::uint32_t frames, std::uint32_t operation);
  void pull(std::uint32_t member, std::uint32_t frames, std::uint32_t operation);
  void fail(std::uint32_t host, bool down);

  void on_frame(std::uint32_t member, const Frame& frame);
  void on_wake(std::uint32_t member);

  [[nodiscard]] Picos progressed_at() const { return progressed_at_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  [[nodiscard]] const host::Stats& stats(std::uint32_t member) const { return *at(member).stats; }
  // As NicReceiver::digest() and received().
  [[nodiscard]] std::uint32_t digest(std::uint32_t member) const { return at(member).digest; }
  [[nodiscard]] std::uint64_t received(std::uint32_t member) const { return at(member).received; }

 private:
  struct Host {
    SoftwareTiming timing;
    std::uint32_t source;
    Picos busy_until = 0;
    bool down = false;
  };
  struct Transfer {
    std::shared_ptr<host::Request> request;
    std::vector<std::uint8_t> memory;
    std::uint32_t operation;
  };
  struct Member {
    std::uint32_t host;
    std::uint32_t identity;
    bool sums;  // else opaque bytes
    std::unique_ptr<host::Stats> stats;
    std::unique_ptr<SoftwarePort> port;
    std::unique_ptr<host::Member> member;
    std::deque<std::pair<Picos, Frame>> arriving;  // when the program sees it
    std::deque<Transfer> pushes;
    std::deque<Transfer> pulls;
    Seq pushed = 0;
    Seq received = 0;
    std::uint32_t digest = 0;
    std::uint64_t handled = 0;
    Picos wake_at = -1;
  };

  Member& at(std::uint32_t member) { return members_[member & ~kSoftware]; }
  [[nodiscard]] const Member& at(std::uint32_t member) const {
    return members_[member & ~kSoftware];
  }
  Transfer make(const Member& member, std::uint32_t frames, std::uint32_t operation, Seq first);
  void serve(std::uint32_t which);
  void finish(Member& member, std::deque<Transfer>& transfers, bool pulls);
  void wake(std::uint32_t which, Picos when);

  Fabric& fabric_;
  std::vector<Host> hosts_;
  std::vector<Member> members_;
  Picos progressed_at_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace catchment::performance
