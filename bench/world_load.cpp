// Events and processor seconds of the event kernel on one core:
// `world-load heap|bare|lines|faults WORKERS EVENTS`.
//
// bare: every worker has 64 events under way; each makes the next one after 1 to 4 us.
// heap: the same on the standard library's binary heap.
// lines: every worker keeps a window of 64 frames of 320 bytes going through racks of 32 and one
// spine, which return a frame once each worker's has come; an event is a frame's arrival at a hop.
// faults: the same, and one frame of a thousand is held back by up to 2 us.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <queue>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/world/native/line.hpp"
#include "sim/world/native/world.hpp"

namespace {

using catchment::world::Event;
using catchment::world::kForever;
using catchment::world::Line;
using catchment::world::LineFaults;
using catchment::world::Picos;
using catchment::world::Transit;
using catchment::world::World;

constexpr std::uint32_t kWindow = 64;
constexpr std::uint32_t kPerRack = 32;
constexpr std::size_t kFrame = 320;

// The outcome in one number: equal runs have equal ones.
class Digest {
 public:
  void add(Picos at, std::uint32_t what) {
    sum_ = (sum_ ^ static_cast<std::uint64_t>(at) ^ what) * 0x100000001B3U;
  }
  [[nodiscard]] std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0xCBF29CE484222325U;
};

// A binary heap with the face of a world.
class Heap {
 public:
  std::uint32_t add_node() {
    numbers_.push_back(0);
    return static_cast<std::uint32_t>(numbers_.size() - 1);
  }
  void schedule(std::uint32_t source, Picos at, std::uint32_t payload) {
    queue_.push({{at, source, payload}, numbers_[source]++});
  }
  template <typename Visit>
  void step(Picos /*end*/, Visit&& visit) {
    const Entry entry = queue_.top();
    queue_.pop();
    visit(entry.event);
  }

 private:
  struct Entry {
    Event<std::uint32_t> event;
    std::uint64_t number;  // among the events of its source
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tuple(b.event.at, b.event.source, b.number) <
             std::tuple(a.event.at, a.event.source, a.number);
    }
  };

  std::priority_queue<Entry, std::vector<Entry>, Later> queue_;
  std::vector<std::uint64_t> numbers_;
};

template <typename Kernel>
std::uint64_t bare(Kernel& world, std::uint32_t workers, std::uint64_t events) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < workers; ++i) nodes.push_back(world.add_node());
  std::uint64_t state = 1;
  const auto delay = [&] {  // xorshift: next to nothing beside the kernel
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    return static_cast<Picos>(1'000'000 + state % 3'000'000);
  };
  for (std::uint32_t i = 0; i < workers * kWindow; ++i) {
    world.schedule(nodes[i % workers], delay(), i % workers);
  }
  Digest digest;
  for (std::uint64_t i = 0; i < events; ++i) {
    world.step(kForever, [&](const Event<std::uint32_t>& event) {
      digest.add(event.at, event.payload);
      world.schedule(nodes[event.payload], event.at + delay(), event.payload);
    });
  }
  return digest.sum();
}

// Where a frame arrives: at a rack's switch or the spine on its way up, at a rack's switch on its
// way down, or at its worker.
struct Arrival {
  enum class Place : std::uint8_t { rack_up, spine, rack_down, worker } place;
  std::uint32_t index;
  std::uint32_t seq;
};

class Tree {
 public:
  Tree(std::uint32_t workers, bool faulty) : world_(1), workers_(workers) {
    racks_ = (workers + kPerRack - 1) / kPerRack;
    LineFaults faults;
    if (faulty) {
      faults.reorder = 0.001;
      faults.delay = 2'000'000;
    }
    const auto add = [&](std::vector<Line>& lines, std::uint32_t count, Picos byte) {
      for (std::uint32_t i = 0; i < count; ++i) {
        lines.emplace_back(world_.seed(), world_.add_line(),
                           catchment::world::LineTiming{byte, 265'000});
        lines.back().set_faults(faults);
      }
    };
    add(up_, workers, 80);
    add(rack_up_, racks_, 20);
    add(rack_down_, racks_, 20);
    add(down_, workers, 80);
    rack_count_.assign(racks_ * kSlots, 0);
    spine_count_.assign(kSlots, 0);
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      for (std::uint32_t seq = 0; seq < kWindow; ++seq) push(worker, seq, 0);
    }
  }

  std::uint64_t run(std::uint64_t events) {
    for (std::uint64_t i = 0; i < events; ++i) {
      world_.step(kForever, [this](const Event<Arrival>& event) { on(event.at, event.payload); });
    }
    return digest_.sum();
  }

 private:
  static constexpr std::uint32_t kSlots = 2 * kWindow;

  void send(Line& line, Picos at, Arrival arrival) {
    const Transit transit = line.send(kFrame, 0, at, at);
    for (std::size_t i = 0; i < transit.copies; ++i) {
      world_.schedule(line.number(), transit.copy[i].last, arrival);
    }
  }

  void push(std::uint32_t worker, std::uint32_t seq, Picos at) {
    send(up_[worker], at, {Arrival::Place::rack_up, worker / kPerRack, seq});
  }

  // Whether the last of `wanted` has come to a slot.
  static bool full(std::uint32_t& count, std::uint32_t wanted) {
    if (++count < wanted) return false;
    count = 0;
    return true;
  }

  void on(Picos at, const Arrival& arrival) {
    digest_.add(at, arrival.seq);
    const auto [place, index, seq] = arrival;
    const std::uint32_t slot = seq % kSlots;
    switch (place) {
      case Arrival::Place::rack_up: {
        const std::uint32_t members = std::min(kPerRack, workers_ - index * kPerRack);
        if (full(rack_count_[index * kSlots + slot], members)) {
          send(rack_up_[index], at, {Arrival::Place::spine, index, seq});
        }
        break;
      }
      case Arrival::Place::spine:
        if (full(spine_count_[slot], racks_)) {
          for (std::uint32_t rack = 0; rack < racks_; ++rack) {
            send(rack_down_[rack], at, {Arrival::Place::rack_down, rack, seq});
          }
        }
        break;
      case Arrival::Place::rack_down: {
        const std::uint32_t first = index * kPerRack;
        for (std::uint32_t i = first; i < std::min(first + kPerRack, workers_); ++i) {
          send(down_[i], at, {Arrival::Place::worker, i, seq});
        }
        break;
      }
      case Arrival::Place::worker:
        push(index, seq + kWindow, at);
        break;
    }
  }

  World<Arrival> world_;
  std::uint32_t workers_;
  std::uint32_t racks_ = 0;
  std::vector<Line> up_;
  std::vector<Line> rack_up_;
  std::vector<Line> rack_down_;
  std::vector<Line> down_;
  std::vector<std::uint32_t> rack_count_;
  std::vector<std::uint32_t> spine_count_;
  Digest digest_;
};

std::uint64_t run(std::string_view kind, std::uint32_t workers, std::uint64_t events) {
  if (kind == "heap") {
    Heap heap;
    return bare(heap, workers, events);
  }
  if (kind == "bare") {
    World<std::uint32_t> world(1);
    return bare(world, workers, events);
  }
  return Tree(workers, kind == "faults").run(events);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view kind = count == 4 ? arguments[1] : "";
  const auto workers = count == 4 ? std::strtoul(arguments[2], nullptr, 10) : 0;
  const auto events = count == 4 ? std::strtoull(arguments[3], nullptr, 10) : 0;
  const std::array<std::string_view, 4> kinds{"heap", "bare", "lines", "faults"};
  if (workers == 0 || events == 0 || std::ranges::find(kinds, kind) == kinds.end()) {
    std::fprintf(stderr, "usage: %s heap|bare|lines|faults WORKERS EVENTS\n", arguments[0]);
    return 2;
  }
  const std::clock_t begin = std::clock();
  const std::uint64_t digest = run(kind, static_cast<std::uint32_t>(workers), events);
  const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("{\"events\": %llu, \"seconds\": %.6f, \"digest\": %llu}\n",
              static_cast<unsigned long long>(events), took,
              static_cast<unsigned long long>(digest));
  return 0;
}
