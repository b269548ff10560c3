#include "catchment/shm/inside_way.hpp"

#include <algorithm>
#include <utility>

namespace catchment::shm {

namespace {

/// Bytes that are run at once, and the first time, while others have nothing to do yet.
constexpr std::size_t kBytesAtOnce = 64 * 1024;
constexpr std::size_t kBytesAtFirst = 32 * 1024;
/// Who finds another one at it goes on to queue for so long, before it looks again and before it
/// waits.
constexpr std::size_t kBytesBetweenLooks = 8 * 1024;
constexpr std::size_t kMostBytes = 256 * 1024;

}  // namespace

InsideWay::InsideWay(std::unique_ptr<Insider> insider)
    : insider_(std::move(insider)),
      room_(std::make_unique_for_overwrite<std::uint8_t[]>(kMostBytes + kMaxCellBytes + kLine)),
      try_at_(kBytesAtFirst) {
  const auto place = reinterpret_cast<std::uintptr_t>(room_.get());
  bytes_ = room_.get() + (round_up(place, kLine) - place);
}

void InsideWay::put(const Pieces& frame, Channel& channel) {
  std::uint8_t* const begin = bytes_ + used_;
  std::ranges::copy(frame.body, std::ranges::copy(frame.head, begin).out);
  add({begin, frame.size()});
  used_ += round_up(frame.size(), kLine);
  look(channel);
}

void InsideWay::put_in_place(Insider::Frame frame, Channel& channel) {
  add(frame);
  look(channel);
}

void InsideWay::add(Insider::Frame frame) {
  frames_.push_back(frame);
  queued_ += round_up(frame.size(), kLine);
}

void InsideWay::look(Channel& channel) {
  if (queued_ >= (left_ ? kBytesAtOnce : kMostBytes) ||
      frames_.size() >= channel.mapping().geometry().cells) {
    publish(channel);
  } else if (queued_ >= try_at_) {
    if (!follows(channel) && run(&Insider::run_if_free, channel)) {
      clear();
      try_at_ = kBytesAtOnce;
    } else {
      try_at_ = queued_ + kBytesBetweenLooks;
    }
  }
}

void InsideWay::publish(Channel& channel) {
  if (frames_.empty()) {
    return;
  }
  if (follows(channel) || !run(&Insider::run, channel)) {
    for (const Insider::Frame& frame : frames_) {
      if (!channel.out().has_room()) {
        break;  // what the ring lost is sent again, as what a network lost
      }
      channel.out().put({.head = {}, .body = frame});
    }
    channel.publish();
    until_ = channel.out().published();
    left_ = true;
  }
  clear();
}

/// Some of the frames may have run when one throws, and they may not run again.
bool InsideWay::run(Run how, Channel& channel) {
  try {
    return (insider_.get()->*how)(frames_, channel);
  } catch (...) {
    clear();
    throw;
  }
}

bool InsideWay::follows(Channel& channel) {
  left_ = left_ && !channel.out().taken(until_);
  return left_;
}

bool InsideWay::publish_if_free(Channel& channel) {
  if (follows(channel)) {
    publish(channel);  // to the switch, without waiting
  } else if (!frames_.empty()) {
    if (!run(&Insider::run_if_free, channel)) {
      return false;
    }
    clear();
  }
  return true;
}

void InsideWay::clear() {
  frames_.clear();
  used_ = queued_ = 0;
  try_at_ = kBytesAtFirst;
}

}  // namespace catchment::shm
