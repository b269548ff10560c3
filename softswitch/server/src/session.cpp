#include "session.hpp"

#include <utility>

#include "rpc_error.hpp"

namespace catchment::server {

namespace {

constexpr std::size_t kQueueBytes = std::size_t{1} << 20;
// When so much waits on all streams, each keeps a share: others' clients that do not read cost one
// that does no more than its longest bursts.
constexpr std::size_t kAllQueueBytes = std::size_t{256} << 20;
constexpr std::size_t kShareBytes = std::size_t{64} << 10;
constexpr std::size_t kMessageBytes = 256;  // of a queued message, beside its content
constexpr auto kFarewell = std::chrono::seconds(2);

}  // namespace

Session::Session(grpc::CallbackServerContext& context, SessionHandler& handler, WorkQueue& work,
                 Timer& timer, Connections& connections, std::atomic<std::size_t>& unread)
    : context_(context),
      handler_(handler),
      work_(work),
      timer_(timer),
      connections_(connections),
      unread_(unread),
      peer_(context.peer()) {}

Session::~Session() { unread_ -= bytes_; }

void Session::start(std::chrono::milliseconds timeout) {
  self_ = shared_from_this();
  timer_.after(timeout, [weak = weak_from_this()] {
    if (const auto session = weak.lock(); session != nullptr && session->is_mute()) {
      session->finish({grpc::StatusCode::DEADLINE_EXCEEDED,
                       "no MasterArbitrationUpdate came on the stream: send one first"});
    }
  });
  StartSendInitialMetadata();  // the client learns that the stream stands
  read_next();
}

bool Session::is_mute() const {
  const std::lock_guard lock(mutex_);
  return !heard_ && !finishing_;
}

// False when the stream is about to end.
bool Session::read_next() {
  const std::lock_guard lock(mutex_);
  if (finishing_) {
    return false;
  }
  StartRead(&request_);
  return true;
}

void Session::OnReadDone(bool ok) {
  if (ok) {
    connections_.received(peer_, request_.ByteSizeLong());
  }
  {
    const std::lock_guard lock(mutex_);
    heard_ = heard_ || !ok || request_.has_arbitration();
  }
  // At most one task of a session waits: the next read begins when it is done.
  work_.submit_always(peer_, [self = shared_from_this(), ok] {
    if (ok) {
      self->handle_request();
    } else {
      self->handler_.ended(self);
      self->finish(grpc::Status::OK);
    }
  });
}

void Session::handle_request() {
  grpc::Status status;
  try {
    handler_.handle(shared_from_this(), request_);
    p4::v1::StreamMessageRequest().Swap(&request_);  // which keeps nothing for the next one
    if (read_next()) {
      return;
    }
  } catch (const RpcError& error) {
    status = error.status();
  } catch (const std::exception& error) {
    status = {grpc::StatusCode::INTERNAL, error.what()};
  }
  handler_.ended(shared_from_this());
  finish(std::move(status));
}

void Session::send(p4::v1::StreamMessageResponse message) {
  const std::size_t bytes = message.ByteSizeLong() + kMessageBytes;
  const std::lock_guard lock(mutex_);
  if (finishing_) {
    return;
  }
  if (!has_room(bytes)) {
    begin_finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "the client does not read its messages"});
    return cut_off();
  }
  push(std::move(message), bytes);
}

bool Session::offer(p4::v1::StreamMessageResponse message) {
  const std::size_t bytes = message.ByteSizeLong() + kMessageBytes;
  const std::lock_guard lock(mutex_);
  if (finishing_ || !has_room(bytes)) {
    return false;
  }
  push(std::move(message), bytes);
  return true;
}

void Session::push(p4::v1::StreamMessageResponse message, std::size_t bytes) {
  queue_.push_back({std::move(message), bytes});
  bytes_ += bytes;
  unread_ += bytes;
  advance();
}

void Session::finish(grpc::Status status) {
  const std::lock_guard lock(mutex_);
  if (finishing_) {
    return;
  }
  begin_finish(std::move(status));
  timer_.after(kFarewell, [weak = weak_from_this()] {
    if (const auto session = weak.lock()) {
      const std::lock_guard late(session->mutex_);
      session->cut_off();
    }
  });
}

// The functions below are called with the mutex held.

bool Session::has_room(std::size_t bytes) const {
  return bytes_ + bytes <= (unread_ + bytes > kAllQueueBytes ? kShareBytes : kQueueBytes);
}

void Session::begin_finish(grpc::Status status) {
  finishing_ = true;
  status_ = std::move(status);
  advance();
}

void Session::advance() {
  if (writing_ || finished_) {
    return;
  }
  if (!queue_.empty()) {
    writing_ = true;
    StartWrite(&queue_.front().message);
  } else if (finishing_) {
    finished_ = true;
    Finish(status_);
  }
}

// Ends the stream even if the client does not read: what is under way fails.
void Session::cut_off() {
  if (!done_) {
    context_.TryCancel();
  }
}

void Session::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  if (ok) {
    connections_.sent(peer_, queue_.front().bytes);
    bytes_ -= queue_.front().bytes;
    unread_ -= queue_.front().bytes;
    queue_.pop_front();
  } else {
    queue_.clear();
    unread_ -= std::exchange(bytes_, 0);
    finishing_ = true;
  }
  advance();
}

void Session::OnDone() {
  std::shared_ptr<Session> self;
  const std::lock_guard lock(mutex_);
  done_ = true;
  self.swap(self_);  // outlives the lock
}

}  // namespace catchment::server
