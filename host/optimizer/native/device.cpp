#include "device.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace catchment::optimizer {
namespace {

constexpr std::chrono::nanoseconds kIdle = std::chrono::milliseconds(200);

double seconds(Clock::time_point point) {
  return std::chrono::duration<double>(point.time_since_epoch()).count();
}

}  // namespace

bool Ticket::wait_for(std::chrono::nanoseconds limit) {
  std::unique_lock guard(lock_);
  return finished_.wait_for(guard, limit, [this] { return done_; });
}

bool Ticket::done() const {
  const std::lock_guard guard(lock_);
  return done_;
}

int Ticket::error() const {
  const std::lock_guard guard(lock_);
  return error_;
}

double Ticket::started() const {
  const std::lock_guard guard(lock_);
  return seconds(started_);
}

double Ticket::ended() const {
  const std::lock_guard guard(lock_);
  return seconds(ended_);
}

Device::Device(FileDescriptor file, DeviceOptions options)
    : file_(std::move(file)),
      options_(std::move(options)),
      engine_(options_.uring ? make_uring_engine(file_.get(), options_.depth)
                             : make_blocking_engine(file_.get())),
      flights_(options_.uring ? options_.depth : 1) {
  for (std::size_t token = 0; token < flights_.size(); ++token) free_.push_back(token);
  thread_ = std::thread([this] { run(); });
}

Device::~Device() {
  {
    const std::lock_guard guard(lock_);
    closing_ = true;
  }
  engine_->wake();
  thread_.join();
}

std::shared_ptr<Ticket> Device::submit(Lane lane, const Operation& operation) {
  auto ticket = std::make_shared<Ticket>();
  const std::size_t chunks = (operation.length + options_.chunk - 1) / options_.chunk;
  ticket->open_chunks_ = std::max<std::size_t>(1, chunks);
  {
    const std::lock_guard guard(lock_);
    queues_[static_cast<std::size_t>(lane)].push_back({operation, ticket});
  }
  engine_->wake();
  return ticket;
}

DeviceStats Device::stats() const {
  const std::lock_guard guard(lock_);
  return stats_;
}

void Device::run() {
  for (;;) {
    const std::chrono::nanoseconds wait = start_some();
    bool leave = false;
    {
      const std::lock_guard guard(lock_);
      leave = closing_ && free_.size() == flights_.size();
    }
    if (leave) break;
    if (const auto done = engine_->next(wait)) finish(*done);
  }
  const std::lock_guard guard(lock_);
  for (auto& queue : queues_) {
    for (const Request& request : queue) {
      const std::lock_guard inner(request.ticket->lock_);
      request.ticket->error_ = ECANCELED;
      request.ticket->done_ = true;
      request.ticket->finished_.notify_all();
    }
    queue.clear();
  }
}

std::chrono::nanoseconds Device::start_some() {
  while (!free_.empty()) {
    if (options_.rate > 0) {
      const auto now = Clock::now();
      if (now < next_start_) return next_start_ - now;
    }
    const std::size_t token = free_.back();
    if (!take_chunk(flights_[token])) break;
    if (free_.size() == flights_.size()) busy_since_ = Clock::now();
    free_.pop_back();
    begin(token);
  }
  return kIdle;
}

// Cuts the next chunk off the queue of the highest priority that has any.
bool Device::take_chunk(Flight& flight) {
  const std::lock_guard guard(lock_);
  if (closing_) return false;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    auto& queue = queues_[lane];
    if (queue.empty()) continue;
    Request& request = queue.front();
    flight.operation = request.rest;
    flight.operation.length = std::min(request.rest.length, options_.chunk);
    flight.ticket = request.ticket;
    flight.lane = static_cast<Lane>(lane);
    flight.id = next_id_++;
    {
      const std::lock_guard inner(request.ticket->lock_);
      if (request.ticket->started_ == Clock::time_point{}) {
        request.ticket->started_ = Clock::now();
      }
    }
    request.rest.offset += flight.operation.length;
    request.rest.address += flight.operation.length;
    request.rest.length -= flight.operation.length;
    if (request.rest.length == 0) queue.pop_front();
    return true;
  }
  return false;
}

void Device::begin(std::size_t token) {
  const Flight& flight = flights_[token];
  if (options_.rate > 0) {
    const auto cost = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
        static_cast<double>(flight.operation.length) / options_.rate));
    next_start_ = std::max(next_start_, Clock::now() - std::chrono::milliseconds(1)) + cost;
  }
  if (options_.faults) {
    if (const auto error = options_.faults->before(file_.get(), flight.operation)) {
      finish({token, -*error});
      return;
    }
    options_.faults->started(options_.index, flight.id, flight.operation);
  }
  engine_->start(token, flight.operation);
}

void Device::finish(const OperationDone& done) {
  Flight& flight = flights_[done.token];
  const bool again = done.result == -EINTR || done.result == -EAGAIN;
  const auto length = static_cast<std::int64_t>(flight.operation.length);
  if (again || (done.result > 0 && done.result < length)) {  // cut short: the rest of it
    const auto moved = static_cast<std::size_t>(again ? 0 : done.result);
    flight.operation.offset += moved;
    flight.operation.address += moved;
    flight.operation.length -= moved;
    engine_->start(done.token, flight.operation);
    return;
  }
  int error = done.result < 0 ? static_cast<int>(-done.result) : 0;
  if (error == 0 && done.result == 0 && length > 0) error = ENODATA;
  if (error == 0 && options_.faults) options_.faults->done(options_.index, flight.id);
  free_.push_back(done.token);
  {
    const std::lock_guard guard(lock_);
    if (flight.operation.action == Action::kSync) {
      ++stats_.syncs;
    } else {
      const auto lane = static_cast<std::size_t>(flight.lane);
      ++stats_.chunks[lane];
      stats_.bytes[lane] += flight.operation.length;
    }
    if (free_.size() == flights_.size()) {
      stats_.busy += std::chrono::duration<double>(Clock::now() - busy_since_).count();
    }
  }
  settle(*std::exchange(flight.ticket, nullptr), error);
}

void Device::settle(Ticket& ticket, int error) {
  const std::lock_guard guard(ticket.lock_);
  if (error != 0 && ticket.error_ == 0) ticket.error_ = error;
  if (--ticket.open_chunks_ == 0) {
    ticket.done_ = true;
    ticket.ended_ = Clock::now();
    ticket.finished_.notify_all();
  }
}

}  // namespace catchment::optimizer
