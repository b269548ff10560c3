// What happens at which time. Of two events of one time the one of the lower source comes first,
// and one source's in the order in which it made them: how far the clock runs at once changes
// nothing.
#pragma once

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "frame.hpp"
#include "node.hpp"

namespace catchment::cosim {

struct Event {
  Picos at;
  std::uint32_t source;  // a line's number, or a node's after all lines
  std::uint64_t number;
  Node* node;
  std::uint32_t port;
  bool wakes;  // no frame: the node asked for it
  Arrival arrival;
};

class Events {
 public:
  void push(Event event) { queue_.push(std::move(event)); }

  // Carries out what happens before `end`.
  void run(Picos end) {
    while (!queue_.empty() && queue_.top().at < end) {
      Event event = queue_.top();
      queue_.pop();
      if (event.wakes) {
        event.node->on_time(event.at);
      } else {
        event.node->on_frame(event.port, std::move(event.arrival));
      }
    }
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      if (a.at != b.at) return a.at > b.at;
      if (a.source != b.source) return a.source > b.source;
      return a.number > b.number;
    }
  };

  std::priority_queue<Event, std::vector<Event>, Later> queue_;
};

}  // namespace catchment::cosim
