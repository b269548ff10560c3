#include "switch_node.hpp"

#include <memory>
#include <utility>

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
  auto bytes = std::make_shared<const Bytes>(frame.data, frame.data + frame.length);
  if (found->second->put(std::move(bytes), false, ready, ready)) {
    packets_.sent(frame.port, 1, frame.length, {&frame, 1});
  } else {
    packets_.dropped(frame.port, DropCause::tx_full, {&frame, 1});
  }
}

}  // namespace catchment::cosim
