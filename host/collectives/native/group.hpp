// An engine and the threads that give it turns.
//
// A caller that waits for an operation runs the protocol in its own thread: nothing is handed over,
// which is what makes small operations fast.  While no caller waits, a thread of the group's own
// runs it; that thread keeps out of the way for a while after a caller has waited.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/common/patience.hpp"
#include "engine.hpp"

namespace catchment::host {

class Group {
 public:
  // spin: see collective_patience().
  Group(EngineConfig config, std::unique_ptr<Port> port, Nanos spin);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  // Starts an operation; any thread may call it.  The order of the calls is that of the operations.
  std::shared_ptr<Operation> start(Call call);
  // Waits until the operation is done; false when that takes longer than `limit`.
  bool wait(const Operation& operation, Nanos limit);
  bool cancel(Operation& operation);
  std::optional<CollectiveFailure> failure();
  // Fails what is pending, serves the others until everything has arrived, at most for `linger`.
  void close(Nanos linger);

  const Stats& stats() const { return engine_.stats(); }
  const Layout& layout() const { return engine_.layout(); }

 private:
  // Waits for its turn at the engine; a thread that runs the protocol lets others in between.
  class Turn;

  void run();
  // Sleeps until the port has something, the time `until` has come, or `stop` is not 0.
  void sleep(Nanos until, const std::atomic<int>& stop);
  void wake();

  Engine engine_;
  Patience patience_;
  std::mutex mutex_;                 // of the engine
  std::atomic<int> wanted_{0};       // threads that wait for the mutex
  std::atomic<int> waiters_{0};      // threads in wait()
  std::atomic<Nanos> waited_at_{0};  // when the last one left
  std::atomic<int> stirred_{0};      // something is new for the own thread
  std::atomic<bool> stop_{false};
  FileDescriptor wakeup_;
  std::mutex resting_;
  std::condition_variable rested_;
  std::mutex closing_;
  std::thread thread_;
};

}  // namespace catchment::host
