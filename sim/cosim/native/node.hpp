// What frames reach at their time: a switch, or a host in software.
#pragma once

#include <cstdint>

#include "frame.hpp"

namespace catchment::cosim {

class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  // A frame's last bit has come in by `port`; it is now `arrival.last`.
  virtual void on_frame(std::uint32_t port, Arrival&& arrival) = 0;
  // A time that the node asked for has come.
  virtual void on_time([[maybe_unused]] Picos now) {}
};

}  // namespace catchment::cosim
