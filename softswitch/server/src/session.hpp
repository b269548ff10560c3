// One client's StreamChannel: what it says, and a bounded queue of what it is told.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "connections.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "timer.hpp"
#include "work_queue.hpp"

namespace catchment::server {

class Session;

// What a session's messages mean. Both are called by the thread of the session's work queue.
class SessionHandler {
 public:
  virtual ~SessionHandler() = default;

  // Throws RpcError to end the stream.
  virtual void handle(const std::shared_ptr<Session>& session,
                      const p4::v1::StreamMessageRequest& request) = 0;

  // The client is gone or cut off: nothing more comes of it. May be called twice.
  virtual void ended(const std::shared_ptr<Session>& session) = 0;
};

// No thread belongs to a session, so idle ones cost memory only. Messages are queued from any
// thread and written in order by gRPC, so that a client that does not read cannot hold up the
// switch or another client.
class Session final
    : public grpc::ServerBidiReactor<p4::v1::StreamMessageRequest, p4::v1::StreamMessageResponse>,
      public std::enable_shared_from_this<Session> {
 public:
  // `unread` counts the bytes that wait on all streams; what is passed by reference must outlive
  // the stream.
  Session(grpc::CallbackServerContext& context, SessionHandler& handler, WorkQueue& work,
          Timer& timer, Connections& connections, std::atomic<std::size_t>& unread);
  ~Session() override;

  // Begins to listen to the client; one that says nothing for `timeout` is cut off. The stream
  // keeps the session until it has ended.
  void start(std::chrono::milliseconds timeout);

  // Queues a message that must arrive (arbitration); a client that leaves too many unread is cut
  // off.
  void send(p4::v1::StreamMessageResponse message);

  // Queues a message that may be lost under load (packet-in, digest, errors): false when the queue
  // was full.
  bool offer(p4::v1::StreamMessageResponse message);

  // Ends the stream with a status, after what is queued; only the first status counts.
  void finish(grpc::Status status);

  // Whether the client has said anything yet, or its stream is over.
  bool is_mute() const;

  const std::string& peer() const { return peer_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  struct Queued {
    p4::v1::StreamMessageResponse message;
    std::size_t bytes;
  };

  bool read_next();
  void handle_request();
  bool has_room(std::size_t bytes) const;
  void push(p4::v1::StreamMessageResponse message, std::size_t bytes);
  void begin_finish(grpc::Status status);
  void advance();
  void cut_off();

  grpc::CallbackServerContext& context_;
  SessionHandler& handler_;
  WorkQueue& work_;
  Timer& timer_;
  Connections& connections_;
  std::atomic<std::size_t>& unread_;
  const std::string peer_;
  p4::v1::StreamMessageRequest request_;  // of one read at a time

  mutable std::mutex mutex_;  // guards what follows, and the calls of gRPC's operations
  std::deque<Queued> queue_;  // the first is under way while writing_
  std::size_t bytes_ = 0;
  bool heard_ = false;
  bool writing_ = false;
  bool finishing_ = false;
  bool finished_ = false;  // Finish is called: no other operation may begin
  bool done_ = false;      // the context is no longer ours
  grpc::Status status_;
  std::shared_ptr<Session> self_;  // from start() until OnDone()
};

}  // namespace catchment::server
