// The packet threads: ports, loops, batches in and out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/faults.hpp"
#include "catchment/softswitch/port_spec.hpp"

namespace catchment::softswitch {

/// What a port counts below the program's own statistics.
struct PortIoStatistics {
  std::uint64_t missed = 0;  // frames that came while there was no room for them
  bool merged_udp = false;   // a host may leave the segmentation of UDP, and checksums, to the port
};

struct PortStatus {
  std::uint32_t port = 0;
  std::string name;  // as in its specification: the interface, or shm:PATH
  bool up = false;
  PortStatistics statistics;
  PortIoStatistics io;
  PortFaults faults;
  FaultCounters faults_in;  // since set_faults
  FaultCounters faults_out;
};

class PortLoop {
 public:
  /// `dataplane` must outlive the loop. `workers`: packet threads; each owns some of the ports.
  explicit PortLoop(Dataplane& dataplane, std::size_t workers = 1);
  ~PortLoop();
  PortLoop(const PortLoop&) = delete;
  PortLoop& operator=(const PortLoop&) = delete;

  /// Binds a port number (1..511 without the CPU and drop ports; 0 is allowed) to what the
  /// specification names. A network interface needs CAP_NET_RAW.
  Status add_port(std::uint32_t port, const PortSpec& spec);

  /// Any thread may call it, at any time; frames that are being held keep their time. The loop says
  /// through on_event what is in force, with the seed.
  Status set_faults(std::uint32_t port, const PortFaults& faults);

  /// Moves frames until stop(); run it on a thread of its own, which is the first worker. A removed
  /// or downed interface is reported through on_event and served again when it is back up.
  void run();
  /// Ends run(); any thread or a signal handler may call it.
  void stop();

  /// A frame from the controller enters the pipeline by the CPU port, as BMv2 does. False: it does
  /// not, for too much waits to do so.
  [[nodiscard]] bool packet_out(std::string frame);

  [[nodiscard]] std::vector<PortStatus> ports() const;
  /// Messages for an operator ("port 3 (s1-eth3): network is down"). Runs on any
  /// thread, one at a time, and must not call back.
  void on_event(std::function<void(const std::string&)> hook);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace catchment::softswitch
