#include "ring_port.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace catchment::host::ring {
namespace {

// Messages that may wait to leave for every vector that may be under way: its partial and its full
// sum, and both once more.
constexpr std::size_t kMostPerSlot = 4;

}  // namespace

RingPort::RingPort(const UdpAddress& local, const UdpAddress& next, Transport transport,
                   const Greeting& stream)
    : frame_bytes_(wire::kHeaderBytes + wire::kLaneBytes * stream.lanes),
      links_(local, next, transport, stream),
      sums_({stream.rank, stream.ranks, stream.slots, stream.lanes}, *this),
      windows_(stream.rank, stream.ranks, *this),
      most_backlog_(kMostPerSlot * stream.slots * (kWordBytes + frame_bytes_)),
      room_(frame_bytes_) {}

std::uint8_t* RingPort::stage() {
  // What waits here is for a neighbour that does not read.
  return links_.backlog() > most_backlog_ ? nullptr : room_.data();
}

void RingPort::commit(std::size_t bytes, std::span<const std::uint8_t> rest) {
  std::ranges::copy(rest, room_.begin() + static_cast<std::ptrdiff_t>(bytes));
  const wire::Header header = wire::decode(room_.data());
  if (header.type == static_cast<std::uint8_t>(wire::PacketType::kPA)) {
    sums_.on_own(header, std::span(room_).subspan(wire::kHeaderBytes));
  } else {
    windows_.on_own(header);
  }
}

bool RingPort::flush() {
  links_.flush();
  return links_.backlog() <= most_backlog_;
}

std::span<const std::span<const std::uint8_t>> RingPort::receive() {
  links_.keep(monotonic_now());
  more_ = links_.read(in_);
  std::span<const std::uint8_t> left(in_);
  for (std::size_t bytes = take(left); bytes != 0; bytes = take(left)) left = left.subspan(bytes);
  in_.erase(in_.begin(), in_.end() - static_cast<std::ptrdiff_t>(left.size()));
  links_.flush();
  handed_.swap(made_);
  made_.clear();
  frames_.clear();
  std::size_t first = 0;
  for (const std::size_t end : std::exchange(ends_, {})) {
    frames_.emplace_back(&handed_[first], end - first);
    first = end;
  }
  return frames_;
}

bool RingPort::may_sleep([[maybe_unused]] bool full,
                         [[maybe_unused]] const std::atomic<int>& stop) {
  return ends_.empty();
}

std::string RingPort::absence() const {
  return std::string("a neighbour in the ring is gone: ") + std::strerror(last_error());
}

std::size_t RingPort::take(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kLeadBytes) return 0;
  Message message{.kind = static_cast<Kind>(bytes[0]),
                  .origin = bytes[1],
                  .hops = bytes[2],
                  .header = wire::decode(&bytes[kWordBytes]),
                  .payload = {}};
  std::size_t size = kLeadBytes;
  if (message.has_payload()) {
    size = kWordBytes + frame_bytes_;
    if (bytes.size() < size) return 0;
    message.payload = bytes.subspan(kLeadBytes, size - kLeadBytes);
  }
  switch (message.kind) {
    case Kind::kWindow:
      windows_.on_message(message);
      break;
    case Kind::kPartial:
    case Kind::kSum:
    case Kind::kAsk:
      sums_.on_message(message);
      break;
  }
  return size;  // also of another kind, which is passed over
}

void RingPort::pass_on(const Message& message) {
  if (links_.backlog() > 2 * most_backlog_) return;  // repetitions, which are made again
  std::array<std::uint8_t, kLeadBytes> lead{};
  lead[0] = static_cast<std::uint8_t>(message.kind);
  lead[1] = message.origin;
  lead[2] = message.hops;
  wire::encode(message.header, &lead[kWordBytes]);
  links_.queue(lead);
  links_.queue(message.payload);
}

void RingPort::deliver(const wire::Header& header, std::span<const std::uint8_t> payload) {
  std::array<std::uint8_t, wire::kHeaderBytes> bytes{};
  wire::encode(header, bytes.data());
  made_.insert(made_.end(), bytes.begin(), bytes.end());
  made_.insert(made_.end(), payload.begin(), payload.end());
  ends_.push_back(made_.size());
}

}  // namespace catchment::host::ring
