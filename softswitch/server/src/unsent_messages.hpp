// Messages of an answer that wait for their client, and how many bytes of them there may be.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <string>

namespace catchment::server {

class UnsentMessages {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostBytesOfAll = std::size_t{256} << 20;

  // Counts its bytes in `all`, too, which must outlive it.
  explicit UnsentMessages(std::atomic<std::size_t>& all) : all_(all) {}
  ~UnsentMessages() { clear(); }
  UnsentMessages(const UnsentMessages&) = delete;
  UnsentMessages& operator=(const UnsentMessages&) = delete;

  // Throws RpcError(RESOURCE_EXHAUSTED), and keeps no message, when these or those of all clients
  // become too many.
  void push(std::string message);

  // Tells whether push() has thrown.
  bool overflowed() const { return overflowed_; }

  bool empty() const { return messages_.empty(); }
  const std::string& front() const { return messages_.front(); }
  void pop();

  // Counts an answer that is kept elsewhere in `all`; throws, and counts nothing, as push() does
  // when those of all clients become too many. Whoever keeps it takes it out of `all`.
  static void count(std::atomic<std::size_t>& all, std::size_t bytes);

 private:
  void clear();

  std::atomic<std::size_t>& all_;
  std::deque<std::string> messages_;
  std::size_t bytes_ = 0;
  bool overflowed_ = false;
};

}  // namespace catchment::server
