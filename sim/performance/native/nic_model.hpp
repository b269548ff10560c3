// Hosts whose NIC is rtl/nic: its transport at line rate, its memory and its pipelines as times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "fabric.hpp"
#include "nic_receiver.hpp"
#include "nic_sender.hpp"

namespace catchment::performance {

// Where docs/explanation/performance.md has each from.
struct NicTiming {
  Picos push = 0;     // from the doorbell to the first vector in the ring
  Picos pull = 0;     // from the last bit of a frame to the record in memory behind its data
  Picos respond = 0;  // from the last bit of a frame to the first bit of what it brings about
  Picos frame = 0;    // of the host for each frame, in or out; 0: as fast as the line
  std::size_t fifo_bytes = 0;  // the MAC takes frames while no more than this waits for the line
};

// What a member does with a stream.
enum class Part : std::uint8_t {
  kSends,     // data out, acknowledgements in: a worker's gradients, a root's parameters
  kReceives,  // data in, heartbeats out
  kBoth,      // a peer of an all-reduce
};

class NicModel {
 public:
  explicit NicModel(Fabric& fabric) : fabric_(fabric) {}

  std::uint32_t add_host(const NicTiming& timing);
  // identity: what its contributions differ by. type: of its data.
  std::uint32_t add_member(std::uint32_t host, Part part, const StreamShape& shape,
                           const StreamTimers& timers, wire::PacketType type,
                           std::uint32_t identity);
  void plug_in(std::uint32_t member, const Outlet& out) {
    members_[member].out = out;
    hosts_[members_[member].host].line = out.line;
  }
  // All streams begin.
  void start();

  void push(std::uint32_t member, std::uint32_t frames, std::uint32_t operation);
  void pull(std::uint32_t member, std::uint32_t operation);
  // The host stops, or comes back where it stopped.
  void fail(std::uint32_t host, bool down);

  void on_frame(std::uint32_t member, const Frame& frame);
  void on_vectors(std::uint32_t member, std::uint32_t frames, std::uint32_t operation);
  void on_heartbeat(std::uint32_t member);
  void on_timeout(std::uint32_t member);
  void on_pump(std::uint32_t host);

  [[nodiscard]] std::uint32_t source(std::uint32_t host) const { return hosts_[host].source; }
  [[nodiscard]] std::uint32_t stream(std::uint32_t member) const { return members_[member].stream; }
  // The member that has sent a heartbeat since the last call.
  std::optional<std::uint32_t> spoken() { return std::exchange(spoken_, std::nullopt); }

  // What decides how it goes on, if all are calm: no frame was asked for again or is missing.
  [[nodiscard]] bool calm() const;
  void hash(StateHash& state) const;
  // Where each stream is: its first sender's next frame.
  [[nodiscard]] std::vector<Seq> bases() const;
  // How often so many frames of each stream can pass before a message ends.
  [[nodiscard]] std::uint64_t room(const std::vector<std::uint32_t>& frames) const;
  // So many frames of each stream have passed, which took `by`.
  void skip(Picos by, const std::vector<std::uint32_t>& frames);
  // When a member last took a frame that it did not have.
  [[nodiscard]] Picos progressed_at() const { return progressed_at_; }
  [[nodiscard]] const std::optional<NicSender>& sender(std::uint32_t member) const {
    return members_[member].sender;
  }
  [[nodiscard]] const std::optional<NicReceiver>& receiver(std::uint32_t member) const {
    return members_[member].receiver;
  }

 private:
  struct Host {
    NicTiming timing;
    std::uint32_t source;
    std::uint32_t line = 0;  // its own
    std::vector<std::uint32_t> members;
    Picos free_at = 0;     // when it has done with the frames so far
    std::size_t turn = 0;  // the member that sends next
    Picos pump_at = -1;    // -1: no call is due
    bool down = false;
  };
  struct Member {
    std::uint32_t host;
    std::uint32_t data_bytes;
    std::uint32_t stream;
    std::uint32_t timers;  // the source of their events
    std::optional<NicSender> sender;
    std::optional<NicReceiver> receiver;
    Outlet out;
    // Of the events that are due; -1: none is.
    Picos timeout_at = -1;
    Picos heartbeat_at = -1;
  };

  static std::size_t room_of(const Host& host, Picos byte);
  void pump(Host& host);
  bool send_one(Host& host, Member& member);
  void send(Host& host, const Member& member, const Frame& frame, std::size_t bytes);
  void send_heartbeat(Host& host, Member& member, std::optional<Seq> missing);
  void watch_timer(std::uint32_t which);
  void watch_heartbeat(std::uint32_t which);
  void finish_pulls(const Host& host, Picos delay);

  Fabric& fabric_;
  std::vector<Host> hosts_;
  std::vector<Member> members_;
  Picos progressed_at_ = 0;
  std::optional<std::uint32_t> spoken_;
  std::vector<std::uint32_t> done_;  // operations that the call under way has ended
};

}  // namespace catchment::performance
