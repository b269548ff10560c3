// From the packet thread to the clients: packet-ins.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "arbiter.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "schema.hpp"

namespace catchment::server {

// The switch's hooks only put the value into a bounded queue; a thread of its own makes messages of
// them and hands them to the primaries. What does not fit is dropped and counted.
class Notifier {
 public:
  Notifier(softswitch::Dataplane& dataplane, Arbiter& arbiter);
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Tells which P4Info describes what comes from the switch from now on.
  void use(std::shared_ptr<const Schema> schema);

  std::uint64_t dropped() const;

 private:
  void run();

  softswitch::Dataplane& dataplane_;
  Arbiter& arbiter_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<softswitch::PacketIn> packets_;
  std::shared_ptr<const Schema> schema_;
  std::uint64_t dropped_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace catchment::server
