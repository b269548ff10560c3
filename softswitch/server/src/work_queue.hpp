// Threads that do what clients ask for, one client after the other.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace catchment::server {

// Requests of one client are done in their order (by one thread: one at a time); clients take
// turns, so one that asks a lot waits for itself. What waits is bounded in bytes.
class WorkQueue {
 public:
  struct Limits {
    std::size_t threads = 1;
    std::size_t client_bytes = std::size_t{1} << 20;  // that wait, beside the last request
    std::size_t bytes = std::size_t{256} << 20;       // beside one request of each client
  };
  using Task = std::function<void()>;

  explicit WorkQueue(Limits limits);
  // Waits for the tasks that have begun; drops those that wait.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Queues a task of `client` that holds `bytes`; false when too much waits already.
  [[nodiscard]] bool submit(const std::string& client, std::size_t bytes, Task task);

  // Queues a task whatever waits: the caller bounds how many there are.
  void submit_always(const std::string& client, Task task);

 private:
  struct Waiting {
    std::size_t bytes;
    Task task;
  };
  struct Client {
    std::deque<Waiting> tasks;
    std::size_t bytes = 0;
  };

  void push(const std::string& client, std::size_t bytes, Task task);
  Task pop();
  void run();

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Client> clients_;  // those with waiting tasks
  std::deque<std::string> turns_;          // their names, the next one first
  std::size_t bytes_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace catchment::server
