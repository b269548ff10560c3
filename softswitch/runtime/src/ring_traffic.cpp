#include "ring_traffic.hpp"

#include <algorithm>
#include <cerrno>

namespace catchment::softswitch {

namespace {

PassedOn::What what_of(shm::Mark::Kind kind) {
  switch (kind) {
    case shm::Mark::Kind::digest:
      return PassedOn::What::digest;
    case shm::Mark::Kind::line:
      return PassedOn::What::line;
    case shm::Mark::Kind::step_limit:
      return PassedOn::What::step_limit;
    default:
      return PassedOn::What::frame;
  }
}

}  // namespace

Received take(shm::Channel& channel, const PortContext& context, Marks marks,
              std::vector<rt::InputFrame>& frames) {
  channel.release();
  Received out;
  shm::Consumer& in = channel.in();
  for (auto left = std::min<std::uint32_t>(in.available(), kBatch); left != 0; --left) {
    shm::Mark mark;
    const std::span<const std::uint8_t> frame =
        marks == Marks::of_insider ? in.next(mark) : in.next();
    if (frame.empty()) {
      break;
    }
    if (mark.kind != shm::Mark::Kind::none) {
      out.passed_on.push_back({what_of(mark.kind), mark.port, frame});
      continue;
    }
    if (frame.size() > context.max_frame_bytes) {
      ++out.too_long;
      continue;
    }
    frames.push_back({frame.data(), static_cast<std::uint32_t>(frame.size()), context.number});
    ++out.frames;
  }
  if (in.fault()) {
    out.error = EPROTO;
  }
  return out;
}

Sent put(shm::Channel& channel, std::span<const rt::OutFrame> frames) {
  Sent out;
  shm::Producer& to = channel.out();
  const std::uint32_t longest = channel.mapping().geometry().cell_bytes;
  for (const rt::OutFrame& frame : frames.first(std::min(frames.size(), kBatch))) {
    if (frame.length > longest || frame.length == 0) {
      ++out.too_long;
      ++out.frames;
      continue;
    }
    if (!to.has_room()) {
      out.full = !to.fault();
      out.error = to.fault() ? EPROTO : 0;
      break;
    }
    to.put({.head = {}, .body = {frame.data, frame.length}});
    ++out.frames;
    ++out.delivered;
    out.bytes += frame.length;
  }
  return out;
}

std::string end_of(shm::Channel& channel, const std::string& who) {
  if (const shm::Fault& fault = channel.fault()) {
    const std::string why = "the ring of " + who + " is corrupt: " + fault.text() + "; detached";
    channel.link().farewell(why);
    return why;
  }
  if (!channel.link().drain()) {
    const std::string& reason = channel.link().reason();
    return who + " is gone" + (reason.empty() ? "" : ": " + reason);
  }
  return {};
}

}  // namespace catchment::softswitch
