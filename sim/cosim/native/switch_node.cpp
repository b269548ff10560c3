#include "switch_node.hpp"

#include <algorithm>
#include <memory>

namespace catchment::cosim {

using softswitch::DropCause;
using softswitch::rt::InputFrame;
using softswitch::rt::OutFrame;

void SwitchNode::on_frame(std::uint32_t port, Arrival&& arrival) {
  if (arrival.damaged) {
    ++damaged_;
    return;
  }
  const InputFrame frame{arrival.bytes->data(), static_cast<std::uint32_t>(arrival.bytes->size()),
                         port};
  out_.clear();
  packets_.process({&frame, 1}, out_);
  for (const OutFrame& one : out_) emit(one, arrival.last + timing_.pipeline);
}

void SwitchNode::emit(const OutFrame& frame, Picos ready) {
  const auto found = ports_.find(frame.port);
  if (found == ports_.end()) {
    packets_.dropped(frame.port, DropCause::no_such_port, {&frame, 1});
    return;
  }
  auto& [line, counts] = found->second;
  const std::size_t waiting = line->backlog(ready) + frame.length;
  if (waiting > timing_.queue_bytes) {
    ++counts.dropped;
    packets_.dropped(frame.port, DropCause::tx_full, {&frame, 1});
    return;
  }
  counts.most_bytes = std::max<std::uint64_t>(counts.most_bytes, waiting);
  line->send(std::make_shared<const Bytes>(frame.data, frame.data + frame.length), false, ready,
             ready);
  packets_.sent(frame.port, 1, frame.length, {&frame, 1});
}

}  // namespace catchment::cosim
