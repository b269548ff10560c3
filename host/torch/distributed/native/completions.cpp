#include "completions.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace catchment::torch_group {

Completions::~Completions() {
  if (in_child()) {
    new std::shared_ptr<State>(std::move(state_));  // never freed: its threads cannot be joined
    return;
  }
  const std::lock_guard lock(state_->mutex);
  state_->ending = true;
  state_->changed.notify_all();
  abandon(*state_, state_->threads);
}

void Completions::follow(Step wait, Step tell) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->ending) {
      state_->tasks.push_back({std::move(wait), std::move(tell)});
      if (!state_->waiting) wake(state_);
      return;
    }
  }
  wait();
  tell();
}

void Completions::close() {
  if (in_child()) return;
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  state_->changed.notify_all();
  while (!state_->threads.empty()) {
    std::vector<std::thread> threads;
    threads.swap(state_->threads);
    if (std::ranges::any_of(threads, [](const std::thread& thread) {
          return thread.get_id() == std::this_thread::get_id();
        })) {
      abandon(*state_, threads);
      return;
    }
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    lock.lock();
  }
}

// Detaches `threads`: nothing waits for them, nor for those that they may start. The caller holds
// the mutex.
void Completions::abandon(State& state, std::vector<std::thread>& threads) {
  state.abandoned = true;
  for (std::thread& thread : threads) thread.detach();
}

// Wakes a thread that is idle, or starts one. The caller holds the mutex.
void Completions::wake(const std::shared_ptr<State>& state) {
  if (state->idle > 0) {
    state->changed.notify_one();
    return;
  }
  std::thread thread([state] { run(state); });
  if (state->abandoned) {
    thread.detach();
  } else {
    state->threads.push_back(std::move(thread));
  }
}

void Completions::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    ++state->idle;
    state->changed.wait(lock,
                        [&] { return state->tasks.empty() ? state->ending : !state->waiting; });
    --state->idle;
    if (state->tasks.empty()) return;
    std::optional<Task> task = std::move(state->tasks.front());
    state->tasks.pop_front();
    if (state->ending && state->tasks.empty()) state->changed.notify_all();
    state->waiting = true;
    lock.unlock();
    task->wait();
    lock.lock();
    state->waiting = false;
    if (!state->tasks.empty()) wake(state);
    lock.unlock();
    task->tell();
    // What it holds may need the GIL to end, whose holder may be waiting for the mutex.
    task.reset();
    lock.lock();
  }
}

}  // namespace catchment::torch_group
