// Clients' TCP connections: what each may send before it makes a whole message.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "log.hpp"

namespace catchment::server {

struct ReceiveLimits {
  std::size_t connection_bytes;  // of one connection
  std::size_t all_bytes;         // of all
};

struct ConnectionCounts {
  std::size_t open = 0;
  std::size_t bytes = 0;  // that make no message yet
  std::uint64_t accepted = 0;
  std::uint64_t cut_off = 0;
};

// gRPC takes a message whole, however long, before it says so, and has one bound on memory for all
// clients, beyond which it ends streams without asking who filled it. Here each connection is
// accounted for: what the kernel received on it, less the messages that it was. One that owes more
// than its limit is cut off, and while all of them owe too much the one that owes most.
class Connections {
 public:
  using HandOver = std::function<void(int listener, int socket)>;

  // `log` must outlive it.
  Connections(ReceiveLimits limits, const Log& log);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Accepts at these sockets, which are its own from now on, and hands each connection over.
  void start(std::vector<int> listeners, HandOver hand_over);

  // Accepts and watches nothing any more.
  void stop();

  // A whole message of a client has come, or answers went to it, which it confirms by a few bytes
  // each. `peer` is gRPC's name of the client; other than TCP's are ignored.
  void received(const std::string& peer, std::size_t bytes);
  void sent(const std::string& peer, std::size_t bytes);

  ConnectionCounts counts() const;

  // At most `most` clients that are connected and have not sent a message.
  std::vector<std::string> silent(std::size_t most) const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    std::string client;
    std::uint64_t accounted = 0;  // of the bytes that the kernel received
    std::size_t owed = 0;         // the rest
    Clock::time_point forgiven;   // until when
    bool spoke = false;
    bool cut = false;
  };

  void watch();
  int wait_ms() const;
  void accept_from(int listener);
  void settle(const std::string& peer, std::size_t bytes, bool spoke);
  void update(int socket, Connection& connection);
  void enforce();
  void cut_off(int socket, Connection& connection, const std::string& why);
  void forget(int socket);

  const ReceiveLimits limits_;
  const Log& log_;
  HandOver hand_over_;
  std::vector<int> listeners_;
  int events_ = -1;  // an epoll instance
  int ending_ = -1;  // an eventfd
  std::thread thread_;

  mutable std::mutex mutex_;                        // guards what follows
  std::map<int, Connection> connections_;           // by our own descriptor of the socket
  std::unordered_map<std::string, int> by_client_;  // the key in connections_
  ConnectionCounts counts_;
};

}  // namespace catchment::server
