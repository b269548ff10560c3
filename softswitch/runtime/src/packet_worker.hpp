// One packet thread: receives on the ports that it owns, runs the program, sends.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/common/patience.hpp"
#include "link_watch.hpp"
#include "switchboard.hpp"

struct epoll_event;

namespace catchment::softswitch {

class PacketWorker {
 public:
  /// The worker of index 0 also serves packet-outs and looks for idle entries. `wake_owner` wakes
  /// the worker of the index that it is given.
  PacketWorker(Switchboard& board, std::size_t index, std::function<void(std::size_t)> wake_owner);

  /// The port is this worker's from now on; or it has faults now. Called in a Change.
  void adopt(SwitchPort& port);
  void refresh();
  [[nodiscard]] std::size_t owned() const { return owned_.size(); }

  /// Receives, runs the program and sends until the board is stopped.
  void run();
  void wake();
  /// False: too much waits already.
  [[nodiscard]] bool packet_out(std::string frame);

 private:
  using Clock = std::chrono::steady_clock;

  std::chrono::nanoseconds wait_at_most();
  void tick();
  void serve(const epoll_event& event);
  void poll();
  void serve_held();
  bool receive(SwitchPort& port);
  void run_packet_outs();
  void put_back(std::span<std::string> frames);
  void run_program(std::span<const rt::InputFrame> frames);
  void queue(const rt::OutFrame& frame);
  void flush_all();
  void show_all();
  void flush(SwitchPort& port);
  void send(SwitchPort& port);
  void clear_queue(SwitchPort& port);
  void watch(int fd, std::uint32_t events, std::uint64_t tag, int operation) const;
  void rewatch(SwitchPort& port);
  void check_links();
  void check_link(SwitchPort& port, int error);

  Switchboard& board_;
  const std::size_t index_;
  std::function<void(std::size_t)> wake_owner_;
  FileDescriptor epoll_;
  FileDescriptor wake_;
  LinkWatch links_;
  std::vector<SwitchPort*> owned_;
  std::vector<SwitchPort*> polled_;  // of them
  std::vector<SwitchPort*> faulty_;  // of them: those with a FaultPort
  std::vector<rt::InputFrame> frames_;
  std::vector<rt::OutFrame> out_;
  std::vector<SwitchPort*> touched_;  // with frames of ours to send
  std::vector<SwitchPort*> unshown_;  // that took some in this turn
  bool woken_frames_ = false;         // in the last turn, of ports with descriptors
  bool polled_frames_ = false;        // and of those that are looked at
  Nanos last_frame_;
  Patience patience_{kSwitchPatience};
  std::mutex packet_out_mutex_;
  std::vector<std::string> packet_outs_;
  std::size_t packet_out_bytes_ = 0;  // of them
};

}  // namespace catchment::softswitch
