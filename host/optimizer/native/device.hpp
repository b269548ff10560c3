// One device (or file) with its own thread: three queues by priority, requests cut into chunks, a
// bounded number of chunks in flight, optionally a bounded rate.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "catchment/common/file_descriptor.hpp"
#include "faults.hpp"
#include "io_engine.hpp"

namespace catchment::optimizer {

using Clock = std::chrono::steady_clock;

// The order is the priority (LuWu, section 3.3).
enum class Lane : std::uint8_t { kParameterRead, kStateRead, kStateWrite };
constexpr std::size_t kLanes = 3;

// What a request became: done when every chunk is.
class Ticket {
 public:
  // Waits until the request is done; false when that takes longer than `limit`.
  bool wait_for(std::chrono::nanoseconds limit);
  bool done() const;
  // errno of the first chunk that failed, ENODATA for a read beyond the end; 0: all is well.
  int error() const;
  // Seconds of the monotonic clock.
  double started() const;
  double ended() const;

 private:
  friend class Device;
  mutable std::mutex lock_;
  std::condition_variable finished_;
  std::size_t open_chunks_ = 0;
  int error_ = 0;
  bool done_ = false;
  Clock::time_point started_{};
  Clock::time_point ended_{};
};

struct DeviceOptions {
  bool uring = true;
  std::size_t chunk = 1 << 20;  // bytes of one operation at most
  unsigned depth = 8;           // operations in flight at most
  double rate = 0;              // bytes per second at most, reads and writes together; 0: no limit
  unsigned index = 0;           // for the log of faults
  std::shared_ptr<Faults> faults;
};

struct DeviceStats {
  std::array<std::uint64_t, kLanes> bytes{};
  std::array<std::uint64_t, kLanes> chunks{};
  std::uint64_t syncs = 0;
  double busy = 0;  // seconds with something in flight
};

class Device {
 public:
  // Takes `file` over.  Throws std::system_error when the kernel refuses io_uring.
  Device(FileDescriptor file, DeviceOptions options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // Finishes what is in flight; what is still queued fails with ECANCELED.
  ~Device();

  // `address` must stay until the ticket is done.  A sync covers the writes that are done.
  std::shared_ptr<Ticket> submit(Lane lane, const Operation& operation);

  DeviceStats stats() const;

 private:
  struct Request {
    Operation rest;  // what has not been started yet
    std::shared_ptr<Ticket> ticket;
  };
  struct Flight {
    Operation operation;
    std::shared_ptr<Ticket> ticket;
    Lane lane;
    std::uint64_t id;
  };

  void run();
  // Starts what may be started; gives how long to wait for the next completion at most.
  std::chrono::nanoseconds start_some();
  bool take_chunk(Flight& flight);
  void begin(std::size_t token);
  void finish(const OperationDone& done);
  static void settle(Ticket& ticket, int error);

  FileDescriptor file_;
  DeviceOptions options_;
  std::unique_ptr<IoEngine> engine_;
  mutable std::mutex lock_;
  std::array<std::deque<Request>, kLanes> queues_;
  DeviceStats stats_;
  bool closing_ = false;
  // Only the device's thread uses these.
  std::vector<Flight> flights_;
  std::vector<std::size_t> free_;
  Clock::time_point next_start_{};
  Clock::time_point busy_since_{};
  std::uint64_t next_id_ = 0;
  std::thread thread_;
};

}  // namespace catchment::optimizer
