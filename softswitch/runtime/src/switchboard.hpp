// What the packet threads share: the ports, and the rules which thread may touch which of them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "catchment/softswitch/packets.hpp"
#include "fault_port.hpp"
#include "port.hpp"

namespace catchment::softswitch {

/// A port with what the loop knows of it. One packet thread owns it: that one receives and looks
/// after the link; every one sends.
struct SwitchPort {
  std::uint32_t number = 0;
  std::size_t owner = 0;
  std::unique_ptr<Port> device;
  FaultPort* faults = nullptr;      // `device`, once it has been given faults
  std::atomic<bool> failed{false};  // another thread could not send: the owner is to look

  std::mutex sending;  // for what follows and device->send()
  int epoll = -1;      // the owner's
  int watched = -1;    // the descriptor that it has
  bool waits_for_room = false;
  std::vector<rt::OutFrame> queue;
  std::size_t queue_head = 0;

  [[nodiscard]] std::size_t queued() const { return queue.size() - queue_head; }
};

/// Lets packet threads take turns side by side, and changes of the ports in between: no thread
/// begins a turn while one waits.
class Turns {
 public:
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(turns) {
      while (turns_.waiting_.load(std::memory_order_relaxed) > 0) {
        std::this_thread::yield();
      }
      turns_.mutex_.lock_shared();
    }
    ~Turn() { turns_.mutex_.unlock_shared(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns& turns_;
  };
  /// Whether a change waits for the turns that have begun.
  [[nodiscard]] bool change_waits() const { return waiting_.load(std::memory_order_relaxed) > 0; }

  class Change {
   public:
    explicit Change(Turns& turns) : turns_(turns) {
      turns_.waiting_.fetch_add(1);
      turns_.mutex_.lock();
      turns_.waiting_.fetch_sub(1);
    }
    ~Change() { turns_.mutex_.unlock(); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    Turns& turns_;
  };

 private:
  std::shared_mutex mutex_;
  std::atomic<int> waiting_{0};
};

struct Switchboard {
  explicit Switchboard(Dataplane& program) : dataplane(program), packets(program.packets()) {}

  void tell(const SwitchPort& port, const std::string& text) {
    if (text.empty()) {
      return;
    }
    const std::lock_guard lock(hook_mutex);
    if (event_hook) {
      event_hook("port " + std::to_string(port.number) + " (" + port.device->name() + "): " + text);
    }
  }

  /// Whether a packet thread is to end its turn after the batch it is at.
  [[nodiscard]] bool interrupted() const {
    return stopped.load(std::memory_order_relaxed) || turns.change_waits();
  }

  Dataplane& dataplane;
  Packets& packets;
  Turns turns;
  std::array<std::unique_ptr<SwitchPort>, rt::kPorts> ports;  // by number; changed in a Change
  std::atomic<bool> stopped{false};
  std::mutex hook_mutex;
  std::function<void(const std::string&)> event_hook;
};

}  // namespace catchment::softswitch
