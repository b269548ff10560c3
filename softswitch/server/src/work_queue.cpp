#include "work_queue.hpp"

#include <utility>

namespace catchment::server {

namespace {
constexpr std::size_t kTaskBytes = 1024;  // of a task and its call, beside the request
}

WorkQueue::WorkQueue(Limits limits) : limits_(limits) {
  for (std::size_t i = 0; i < limits_.threads; ++i) {
    threads_.emplace_back([this] { run(); });
  }
}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

bool WorkQueue::submit(const std::string& client, std::size_t bytes, Task task) {
  const std::lock_guard lock(mutex_);
  if (const auto known = clients_.find(client);
      known != clients_.end() &&
      (known->second.bytes >= limits_.client_bytes || bytes_ + bytes > limits_.bytes)) {
    return false;
  }
  push(client, bytes + kTaskBytes, std::move(task));
  return true;
}

void WorkQueue::submit_always(const std::string& client, Task task) {
  const std::lock_guard lock(mutex_);
  push(client, kTaskBytes, std::move(task));
}

void WorkQueue::push(const std::string& client, std::size_t bytes, Task task) {
  const auto [place, is_new] = clients_.try_emplace(client);
  if (is_new) {
    turns_.push_back(client);
  }
  place->second.tasks.push_back({bytes, std::move(task)});
  place->second.bytes += bytes;
  bytes_ += bytes;
  changed_.notify_one();
}

WorkQueue::Task WorkQueue::pop() {
  const auto place = clients_.find(turns_.front());
  turns_.pop_front();
  Client& client = place->second;
  Waiting next = std::move(client.tasks.front());
  client.tasks.pop_front();
  client.bytes -= next.bytes;
  bytes_ -= next.bytes;
  if (client.tasks.empty()) {
    clients_.erase(place);
  } else {
    turns_.push_back(place->first);
  }
  return std::move(next.task);
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !turns_.empty(); });
    if (ending_) {
      return;
    }
    Task task = pop();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes without the lock
    lock.lock();
  }
}

}  // namespace catchment::server
