#include "flight.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace catchment::torch_group {

Flight::Flight(std::string name, std::vector<at::Tensor> kept)
    : name_(std::move(name)), kept_(std::move(kept)) {}

Flight::~Flight() {
  for (catchment_work* const work : works_) catchment_work_free(work);
}

void Flight::put_down() {
  std::vector<at::Tensor> freed;  // after the lock: the last reference to a tensor may need the GIL
  const std::lock_guard lock(putting_down_);
  freed.swap(kept_);
}

bool Flight::done() const {
  return std::all_of(works_.begin(), works_.end(),
                     [](const catchment_work* work) { return catchment_work_done(work) != 0; });
}

bool Flight::wait(std::int64_t limit_ns) const {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::nanoseconds(limit_ns);
  for (catchment_work* const work : works_) {
    const std::chrono::nanoseconds left = until - Clock::now();
    if (catchment_work_wait(work, std::max<std::int64_t>(0, left.count())) == 0) return false;
  }
  return true;
}

std::optional<Failure> Flight::failure() const {
  for (const catchment_work* const work : works_) {
    catchment_result result;
    catchment_work_result(work, &result);
    if (result.failed == 0) continue;
    Failure failure{.kind = result.kind,
                    .message = result.message,
                    .hint = result.hint,
                    .peers = {},
                    .seq = {},
                    .fatal = result.fatal != 0};
    for (int rank = 0; rank < std::numeric_limits<decltype(result.peers)>::digits; ++rank) {
      if ((result.peers >> rank & 1) != 0) failure.peers.push_back(rank);
    }
    if (result.has_seq != 0) failure.seq = result.seq;
    return failure;
  }
  return std::nullopt;
}

}  // namespace catchment::torch_group
