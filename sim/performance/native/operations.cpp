#include "operations.hpp"

#include <algorithm>
#include <stdexcept>

namespace catchment::performance {

std::uint32_t Operations::add(Action action, std::uint32_t target, std::int64_t amount) {
  operations_.push_back({action, target, amount});
  if (action == Action::kCompute && target >= processors_.size()) processors_.resize(target + 1, 0);
  ++left_;
  return static_cast<std::uint32_t>(operations_.size() - 1);
}

void Operations::order(std::uint32_t first, std::uint32_t second) {
  edges_.push_back({first, second});
  ++operations_.at(second).waits;
}

void Operations::start() {
  if (!offsets_.empty()) throw std::logic_error("a workload runs once");
  offsets_.assign(operations_.size() + 1, 0);
  for (const Edge& edge : edges_) ++offsets_[edge.first + 1];
  for (std::size_t i = 1; i < offsets_.size(); ++i) offsets_[i] += offsets_[i - 1];
  followers_.resize(edges_.size());
  std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (const Edge& edge : edges_) followers_[next[edge.first]++] = edge.second;
  edges_ = {};
  for (std::uint32_t i = 0; i < operations_.size(); ++i) {
    if (operations_[i].waits == 0) begin(i);
  }
}

void Operations::begin(std::uint32_t which) {
  Operation& operation = operations_[which];
  const Picos now = fabric_.world.now();
  operation.began = now;
  switch (operation.action) {
    case Action::kJoin:
      return end_at(which, now);
    case Action::kDelay:
      return end_at(which, now + operation.amount);
    case Action::kCompute: {
      Picos& free = processors_[operation.target];
      operation.began = std::max(now, free);
      free = operation.began + operation.amount;
      return end_at(which, free);
    }
    case Action::kPush:
    case Action::kPull:
      return transfer(which);
  }
}

void Operations::transfer(std::uint32_t which) {
  const Operation& operation = operations_[which];
  const auto frames = static_cast<std::uint32_t>(operation.amount);
  const bool pushes = operation.action == Action::kPush;
  if ((operation.target & kSoftware) != 0) {
    if (pushes) return programs_.push(operation.target, frames, which);
    return programs_.pull(operation.target, frames, which);
  }
  if (pushes) return nics_.push(operation.target, frames, which);
  nics_.pull(operation.target, which);
}

void Operations::end_at(std::uint32_t which, Picos at) {
  busy_until_ = std::max(busy_until_, at);
  fabric_.world.schedule(source_, at, {What::kDone, which, {}});
}

void Operations::on_done(std::uint32_t which) {
  operations_[which].ended = fabric_.world.now();
  busy_until_ = std::max(busy_until_, fabric_.world.now());
  --left_;
  for (std::uint32_t i = offsets_[which]; i < offsets_[which + 1]; ++i) {
    const std::uint32_t follower = followers_[i];
    if (--operations_[follower].waits == 0) begin(follower);
  }
}

}  // namespace catchment::performance
