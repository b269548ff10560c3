#include "completions.hpp"

#include <utility>

namespace catchment::torch_group {

Completions::~Completions() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_all();
  if (thread_.joinable()) thread_.detach();
}

void Completions::follow(Task task) {
  {
    const std::lock_guard lock(starting_);
    const std::lock_guard state_lock(state_->mutex);
    if (!state_->ending) {
      state_->tasks.push_back(std::move(task));
      task = nullptr;
      if (!thread_.joinable()) thread_ = std::thread([state = state_] { run(state); });
    }
  }
  state_->changed.notify_one();
  if (task) task();
}

void Completions::close() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_all();
  const std::lock_guard lock(starting_);
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Completions::run(const std::shared_ptr<State>& state) {
  while (true) {
    Task task;
    {
      std::unique_lock lock(state->mutex);
      state->changed.wait(lock, [&] { return state->ending || !state->tasks.empty(); });
      if (state->tasks.empty()) return;
      task = std::move(state->tasks.front());
      state->tasks.pop_front();
    }
    task();
  }
}

}  // namespace catchment::torch_group
