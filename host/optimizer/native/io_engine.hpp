// How a device's thread talks to the kernel: io_uring, or one blocking call at a time where
// io_uring is not permitted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace catchment::optimizer {

enum class Action : std::uint8_t { kRead, kWrite, kSync };

struct Operation {
  Action action;
  std::uint64_t offset;
  std::byte* address;
  std::size_t length;
};

// `result`: bytes moved, or a negative errno.
struct OperationDone {
  std::size_t token;
  std::int64_t result;
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  virtual void start(std::size_t token, const Operation& operation) = 0;
  // The next finished operation; nothing when `timeout` passed, wake() was called, or the kernel
  // has yet to take what was started: the call that follows tries again.
  virtual std::optional<OperationDone> next(std::chrono::nanoseconds timeout) = 0;
  // Makes next() return soon; any thread may call it.
  virtual void wake() = 0;
};

// `depth`: operations in flight at most.  Throws std::system_error when the kernel refuses
// io_uring.
std::unique_ptr<IoEngine> make_uring_engine(int descriptor, unsigned depth);
std::unique_ptr<IoEngine> make_blocking_engine(int descriptor);

}  // namespace catchment::optimizer
