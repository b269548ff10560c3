// One client's StreamChannel: an outgoing queue and the thread that writes it.
#pragma once

#include <grpcpp/support/sync_stream.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "p4/v1/p4runtime.pb.h"

namespace catchment::server {

// Messages are queued from any thread and written in order by one thread of the session, so that a
// client that does not read cannot hold up the switch or another client.
class Session {
 public:
  using Stream =
      grpc::ServerReaderWriter<p4::v1::StreamMessageResponse, p4::v1::StreamMessageRequest>;

  // `stream` must outlive the session's last close().
  Session(Stream& stream, std::string peer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Queues a message that must arrive (arbitration).
  void send(p4::v1::StreamMessageResponse message);

  // Queues a message that may be lost under load (packet-in, digest, errors): false when the queue
  // was full.
  bool offer(p4::v1::StreamMessageResponse message);

  // Writes out what is queued, unless the client is gone, and ends the writing thread.
  void close();

  const std::string& peer() const { return peer_; }

 private:
  void write_queue();

  Stream& stream_;
  const std::string peer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<p4::v1::StreamMessageResponse> queue_;
  bool closing_ = false;
  std::thread writer_;
};

}  // namespace catchment::server
