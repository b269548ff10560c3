// A ring of hosts in flow mode: blocks of a few frames instead of frames. Hosts run ahead of slow
// lines by their windows, so that frames wait in front of those; heartbeats of the other way wait
// behind them, and hold up the windows that they were to open.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/world/native/world.hpp"

namespace catchment::performance {

using world::Picos;

// What every host and line has; bytes on the wire, with the gap behind a frame.
struct RingTiming {
  Picos latency = 0;
  Picos pipeline = 0;
  Picos push = 0;  // as of nic_model.hpp, the next two as well
  Picos pull = 0;
  Picos respond = 0;
  Picos data_bytes = 0;
  Picos head_bytes = 0;  // of a heartbeat
  Picos fifo_bytes = 0;  // of a MAC
  std::uint32_t window = 0;
};

class RingOfBlocks {
 public:
  // bytes: the time of a byte on each line.
  RingOfBlocks(const RingTiming& timing, const std::vector<Picos>& bytes);

  // Of a host to the next one. forth: the lines of its data, its own first; back: those of the
  // heartbeats, the next host's own first; heartbeat: between two at the most.
  void add_hop(std::vector<std::uint32_t> forth, std::vector<std::uint32_t> back, Picos heartbeat);

  // When the last host has the last chunk of so many frames; each passes on what it got before.
  Picos run(std::uint32_t chunk, std::uint32_t steps);

 private:
  // The last block that came, and when what came is through.
  struct Line {
    Picos byte = 0;
    Picos came_first = 0;
    Picos came_last = 0;
    Picos left_first = 0;
    Picos free = 0;
  };

  struct Hop {
    std::vector<std::uint32_t> forth;
    std::vector<std::uint32_t> back;
    Picos heartbeat = 0;
    std::uint32_t source = 0;
    bool busy = false;        // its own line
    std::uint64_t may = 0;    // frames of chunks that the host has
    std::uint64_t sent = 0;   // frames
    std::uint64_t acked = 0;  // that the sender knows of
    std::uint64_t got = 0;    // that the receiver has
    std::uint64_t said = 0;   // that its last heartbeat named
    Picos said_at = 0;
  };

  enum class What : std::uint8_t {
    kChunk,      // a host has another chunk
    kFree,       // its line takes the next block
    kAtLine,     // a block comes to line `place` of forth
    kReceived,   // its last frame has come
    kInterval,   // between two heartbeats is over
    kAckAtLine,  // a heartbeat comes to line `place` of back
    kAcked,      // it has come
  };

  struct Happening {
    What what = What::kChunk;
    std::uint32_t hop = 0;
    std::uint32_t place = 0;
    std::uint64_t frames = 0;  // of a block, or that a heartbeat names
    Picos last = 0;            // when the block's last frame comes
  };

  void happen(const Happening& event);
  void send(std::uint32_t which);
  void pass(const Happening& block);
  void receive(std::uint32_t which, std::uint64_t frames);
  void say(std::uint32_t which);
  void pass_back(const Happening& heartbeat);
  // How long a short frame that comes now waits.
  [[nodiscard]] Picos wait(const Line& line) const;
  // From a frame's first bit on a line until it is there, with its gap behind it.
  [[nodiscard]] Picos way(const Line& line, Picos bytes) const;
  void schedule(std::uint32_t hop, Picos at, Happening what);

  RingTiming timing_;
  std::vector<Line> lines_;
  std::vector<Hop> hops_;
  world::World<Happening> world_{0};
  std::uint32_t chunk_ = 0;
  std::uint64_t all_ = 0;  // frames of a hop
  std::size_t left_ = 0;   // hops that are not through
  Picos ended_ = 0;
};

}  // namespace catchment::performance
