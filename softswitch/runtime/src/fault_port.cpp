#include "fault_port.hpp"

#include <algorithm>

namespace catchment::softswitch {

namespace {

constexpr auto kRetry = std::chrono::microseconds(100);

/// Ports and directions with one seed must not lose the same frames.
std::uint64_t line_of(std::uint32_t port, std::uint64_t direction) {
  return 2 * std::uint64_t{port} + direction;
}

}  // namespace

FaultPort::FaultPort(std::unique_ptr<Port> inner, std::uint32_t number)
    : inner_(std::move(inner)), number_(number) {
  inner_->keep_to_switch();
}

void FaultPort::set(const PortFaults& faults) {
  faults_ = faults;
  in_.set(faults.in, faults.seed, line_of(number_, 0));
  out_.set(faults.out, faults.seed, line_of(number_, 1));
}

Received FaultPort::receive(std::vector<rt::InputFrame>& frames) {
  if (in_.idle()) {
    return inner_->receive(frames);
  }
  raw_.clear();
  Received got = inner_->receive(raw_);
  if (got.error != 0) {
    return got;
  }
  const auto now = FaultLane::Clock::now();
  passing_in_.clear();
  in_.release(now, kBatch, passing_in_);
  for (const rt::InputFrame& frame : raw_) {
    in_.admit({frame.data, frame.length}, now, passing_in_);
  }
  for (const FaultLane::Bytes frame : passing_in_) {
    frames.push_back({frame.data(), static_cast<std::uint32_t>(frame.size()), number_});
  }
  got.frames = passing_in_.size();
  return got;
}

Sent FaultPort::send(std::span<const rt::OutFrame> frames) {
  if (out_.idle() && unsent_.empty()) {
    return inner_->send(frames);
  }
  Sent total;
  const auto now = FaultLane::Clock::now();
  passing_out_.clear();
  if (!unsent_.empty()) {
    const auto backlog = std::move(unsent_);
    unsent_.clear();
    passing_out_.assign(backlog.begin(), backlog.end());
    send_ready(now, total);
    if (!unsent_.empty() || total.error != 0) {
      return total;
    }
    passing_out_.clear();
  }
  out_.release(now, kBatch, passing_out_);
  const std::size_t count = std::min(frames.size(), kBatch);
  for (const rt::OutFrame& frame : frames.first(count)) {
    out_.admit({frame.data, frame.length}, now, passing_out_);
  }
  total.frames = count;
  send_ready(now, total);
  return total;
}

void FaultPort::send_ready(FaultLane::Clock::time_point now, Sent& total) {
  ready_.clear();
  for (const FaultLane::Bytes frame : passing_out_) {
    // A port only reads what it sends.
    ready_.push_back({const_cast<std::uint8_t*>(frame.data()),
                      static_cast<std::uint32_t>(frame.size()), number_});
  }
  std::span<const rt::OutFrame> left = ready_;
  while (!left.empty()) {
    const Sent sent = inner_->send(left);
    left = left.subspan(sent.frames);
    total.delivered += sent.delivered;
    total.bytes += sent.bytes;
    total.refused += sent.refused;
    total.too_long += sent.too_long;
    if (sent.error != 0) {
      total.error = sent.error;
      total.refused += left.size();
      return;
    }
    if (sent.full) {
      break;
    }
  }
  for (const rt::OutFrame& frame : left) {
    unsent_.emplace_back(frame.data, frame.data + frame.length);
  }
  if (!left.empty()) {
    total.full = true;
    retry_ = now + kRetry;
  }
}

}  // namespace catchment::softswitch
