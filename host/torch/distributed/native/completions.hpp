// The threads that complete futures. They wait for operations one by one, in their order; while a
// thread runs an operation's callbacks, another one waits for the next operation, for a callback
// may itself start an operation and wait for it.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace catchment::torch_group {

class Completions {
 public:
  using Step = std::function<void()>;

  Completions() = default;
  // Does not wait for the threads, which may be waiting for the GIL that the caller holds.
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  // `wait` returns when an operation has ended; `tell` then runs whatever callbacks there are.
  // After `close`, both run at once, in the caller's thread.
  void follow(Step wait, Step tell);
  // Runs what was followed and ends the threads; call without the GIL.
  void close();

 private:
  struct Task {
    Step wait;
    Step tell;
  };

  // While there are tasks and none is waited for, a thread is on its way to take the first.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Task> tasks;
    std::vector<std::thread> threads;
    size_t idle = 0;
    bool waiting = false;
    bool ending = false;
    bool abandoned = false;
  };

  static void abandon(State& state, std::vector<std::thread>& threads);
  static void wake(const std::shared_ptr<State>& state);
  static void run(const std::shared_ptr<State>& state);

  // A forked child has none of the threads, and perhaps a mutex that one of them holds.
  bool in_child() const { return process_ != getpid(); }

  pid_t process_ = getpid();
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace catchment::torch_group
