// What goes wrong on purpose, for tests: an error, a torn write or the end of the process at the
// n-th operation; and a log of everything that reached a device, from which a power cut can be
// replayed.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "io_engine.hpp"

namespace catchment::optimizer {

// `on`: which operations count.  From the n-th on (from 0), every one fails with `error`, 0: the
// process is killed.  `torn`: the n-th writes its first half.
struct FaultPlan {
  std::optional<Action> on;  // nothing: writes and syncs
  std::int64_t after = -1;
  int error = 0;
  bool torn = false;
};

// Shared by all devices of a store; thread-safe.
class Faults {
 public:
  Faults(FaultPlan plan, const std::string& log);

  // Called before an operation reaches the kernel; returns an error to report instead of doing the
  // operation, or nothing.
  std::optional<int> before(int descriptor, const Operation& operation);

  // The log: a record when an operation is started and one when it is done.
  void started(unsigned device, std::uint64_t id, const Operation& operation);
  void done(unsigned device, std::uint64_t id);

  // Operations counted so far.
  std::int64_t seen() const;

 private:
  FaultPlan plan_;
  mutable std::mutex lock_;
  std::int64_t seen_ = 0;
  std::ofstream log_;
};

}  // namespace catchment::optimizer
