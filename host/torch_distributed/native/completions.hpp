// The thread that completes futures, in the order of the operations; it starts with the first.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace catchment::torch_group {

class Completions {
 public:
  using Task = std::function<void()>;

  Completions() = default;
  // Does not wait for the thread, which may be waiting for the GIL that the caller holds.
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  // `task` waits for an operation and tells whoever wants to know. After `close`, it runs at once.
  void follow(Task task);
  // Runs what was followed and ends the thread; call without the GIL.
  void close();

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Task> tasks;
    bool ending = false;
  };

  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::mutex starting_;
  std::thread thread_;
};

}  // namespace catchment::torch_group
