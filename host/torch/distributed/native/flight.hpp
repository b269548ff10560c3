// Operations of a communicator in flight, and the tensors that they read and write until they are
// done and somebody has seen it.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "catchment_collectives.h"

namespace catchment::torch_group {

// Why an operation failed, as the C library says it; peers are worker indices.
struct Failure {
  std::string kind;
  std::string message;
  std::string hint;
  std::vector<int> peers;
  std::optional<std::uint32_t> seq;
  bool fatal = false;
};

// The longest time that anybody may mean: a century; its nanoseconds are numbers, also from now on.
inline constexpr std::chrono::milliseconds kLongest = std::chrono::hours(876'000);

class Flight {
 public:
  // `kept` stays in place until all operations are done.
  Flight(std::string name, std::vector<at::Tensor> kept);
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  void add(catchment_work* work) { works_.push_back(work); }
  const std::string& name() const { return name_; }
  bool done() const;
  // Lets go of the tensors; call when all are done.
  void put_down();
  // True when all are done within so many nanoseconds; the calling thread runs the protocol.
  bool wait(std::int64_t limit_ns) const;
  // The failure of the first operation, in their order, that failed; call when all are done.
  std::optional<Failure> failure() const;

 private:
  std::string name_;
  std::mutex putting_down_;
  std::vector<at::Tensor> kept_;
  std::vector<catchment_work*> works_;
};

}  // namespace catchment::torch_group
