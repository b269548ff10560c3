#include "ring_windows.hpp"

#include <algorithm>

namespace catchment::host::ring {

using wire::Flag;

void RingWindows::on_own(const wire::Header& header) {
  learn(rank_, header);
  sink_.pass_on({.kind = Kind::kWindow,
                 .origin = static_cast<std::uint8_t>(rank_),
                 .hops = static_cast<std::uint8_t>(windows_.size()),
                 .header = header,
                 .payload = {}});
}

void RingWindows::on_message(const Message& message) {
  if (message.origin >= windows_.size()) return;
  learn(message.origin, message.header);
  tell(message.header);
  if (message.hops <= 1) return;
  Message further = message;
  --further.hops;
  sink_.pass_on(further);
}

void RingWindows::learn(std::uint32_t rank, const wire::Header& header) {
  if (!wire::has(header.flags, Flag::kACKV)) return;
  Window& window = windows_[rank];
  window.ack = window.known ? later(window.ack, header.ack) : header.ack;
  window.credit = window.known ? later(window.credit, header.credit) : header.credit;
  window.known = true;
}

void RingWindows::tell(const wire::Header& header) {
  wire::Header merged = header;
  merged.type = static_cast<std::uint8_t>(wire::PacketType::kMH);
  const bool all = std::ranges::all_of(windows_, &Window::known);
  if (all) {
    merged.flags |= static_cast<std::uint8_t>(Flag::kACKV);
    merged.ack = windows_.front().ack;
    merged.credit = windows_.front().credit;
    for (const Window& window : windows_) {
      merged.ack = earlier(merged.ack, window.ack);
      merged.credit = earlier(merged.credit, window.credit);
    }
  } else {
    merged.flags &= static_cast<std::uint8_t>(~static_cast<unsigned>(Flag::kACKV));
    merged.ack = merged.credit = 0;
  }
  if (all || wire::has(header.flags, Flag::kRETX)) sink_.deliver(merged, {});
}

}  // namespace catchment::host::ring
