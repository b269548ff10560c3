// Devices of a ring, each a Verilated sync_node with its memory, and the links between them, on one
// clock and behind C functions. Links have a latency; flits on them may be damaged, lost or held
// back. A device alone is behind the table of ring_device.hpp: somebody else has clock and links.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "rtl/harness/axi_memory.hpp"
#include "rtl/harness/axil_master.hpp"
#include "rtl/harness/ring_device.hpp"
#include "rtl/harness/top.hpp"

namespace {

using catchment::rtl::AxilMaster;
using catchment::rtl::AxiMemory;
using catchment::rtl::MemoryPace;
using catchment::rtl::RingDevice;

// The ports of a core's memory, by the names that AxiMemory knows.
#define CATCHMENT_PORT(name) decltype((std::declval<Top&>().m_axi_0_##name)) m_axi_##name
struct MemoryPort {
  CATCHMENT_PORT(araddr);
  CATCHMENT_PORT(arlen);
  CATCHMENT_PORT(arvalid);
  CATCHMENT_PORT(arready);
  CATCHMENT_PORT(rdata);
  CATCHMENT_PORT(rresp);
  CATCHMENT_PORT(rlast);
  CATCHMENT_PORT(rvalid);
  CATCHMENT_PORT(rready);
  CATCHMENT_PORT(awaddr);
  CATCHMENT_PORT(awlen);
  CATCHMENT_PORT(awvalid);
  CATCHMENT_PORT(awready);
  CATCHMENT_PORT(wdata);
  CATCHMENT_PORT(wstrb);
  CATCHMENT_PORT(wlast);
  CATCHMENT_PORT(wvalid);
  CATCHMENT_PORT(wready);
  CATCHMENT_PORT(bresp);
  CATCHMENT_PORT(bvalid);
  CATCHMENT_PORT(bready);
};
#undef CATCHMENT_PORT

MemoryPort port(Top& top, int core) {
#define CATCHMENT_SIGNAL(name) core == 0 ? top.m_axi_0_##name : top.m_axi_1_##name
  return {CATCHMENT_SIGNAL(araddr),  CATCHMENT_SIGNAL(arlen),  CATCHMENT_SIGNAL(arvalid),
          CATCHMENT_SIGNAL(arready), CATCHMENT_SIGNAL(rdata),  CATCHMENT_SIGNAL(rresp),
          CATCHMENT_SIGNAL(rlast),   CATCHMENT_SIGNAL(rvalid), CATCHMENT_SIGNAL(rready),
          CATCHMENT_SIGNAL(awaddr),  CATCHMENT_SIGNAL(awlen),  CATCHMENT_SIGNAL(awvalid),
          CATCHMENT_SIGNAL(awready), CATCHMENT_SIGNAL(wdata),  CATCHMENT_SIGNAL(wstrb),
          CATCHMENT_SIGNAL(wlast),   CATCHMENT_SIGNAL(wvalid), CATCHMENT_SIGNAL(wready),
          CATCHMENT_SIGNAL(bresp),   CATCHMENT_SIGNAL(bvalid), CATCHMENT_SIGNAL(bready)};
#undef CATCHMENT_SIGNAL
}

using Flit = std::remove_reference_t<decltype(std::declval<Top&>().next_tx)>;
constexpr std::uint32_t kFlitBits = 589;
static_assert(sizeof(Flit) == (kFlitBits + 31) / 32 * 4);

struct Faults {
  std::uint32_t damage = 0;  // of 65536 flits
  std::uint32_t lose = 0;    // of 65536 flits
  std::uint32_t stall = 0;   // of 256 clocks
};

// One direction of a link.
class Wire {
 public:
  Wire(std::uint32_t latency, std::uint32_t seed) : latency_(latency), random_(seed) {}

  bool ready = true;

  // What arrives in this clock; nullptr: nothing.
  const Flit* drive(const Faults& faults) {
    ready = faults.stall == 0 || (random_() & 255U) >= faults.stall;
    if (flying_.size() < latency_) return nullptr;
    arrived_ = flying_.front();
    flying_.pop_front();
    return arrived_.there ? &arrived_.flit : nullptr;
  }

  void sample(const Flit& flit, const Faults& faults) {
    Flying flying{flit, ready};
    if (draw(faults.lose)) flying.there = false;
    if (draw(faults.damage)) {
      const std::uint32_t bit = random_() % kFlitBits;
      flying.flit[bit / 32] ^= 1U << bit % 32;
    }
    flying_.push_back(flying);
  }

 private:
  struct Flying {
    Flit flit;
    bool there;
  };

  bool draw(std::uint32_t of65536) { return of65536 != 0 && (random_() & 0xFFFFU) < of65536; }

  std::size_t latency_;
  std::mt19937 random_;
  std::deque<Flying> flying_;
  Flying arrived_{};
};

class Node {
 public:
  Node(std::uint8_t* bytes, std::uint64_t size, std::uint32_t seed)
      : context(powered_up(seed)),
        owned(std::make_unique<Top>(context.get())),
        top(*owned),
        ports{port(top, 0), port(top, 1)},
        memories{AxiMemory<MemoryPort>(bytes, 0, size, seed),
                 AxiMemory<MemoryPort>(bytes, 0, size, seed + 1)} {
    begin_reset(top);
  }

  // What the neighbours' links bring in this clock, nullptr: nothing, and whether they take a flit.
  void clock(const Flit* from_before, const Flit* from_next, bool before_ready, bool next_ready) {
    top.before_rx_valid = from_before != nullptr;
    if (from_before != nullptr) top.before_rx = *from_before;
    top.next_rx_valid = from_next != nullptr;
    if (from_next != nullptr) top.next_rx = *from_next;
    top.before_tx_ready = before_ready;
    top.next_tx_ready = next_ready;
    bus.drive(top);
    for (int core = 0; core < 2; ++core) memories[core].drive(ports[core]);
    top.clk = 0;
    top.eval();
    bus.sample(top);
    for (int core = 0; core < 2; ++core) memories[core].sample(ports[core]);
    to_before = top.before_tx;
    to_next = top.next_tx;
    top.clk = 1;
    top.eval();
  }

  std::unique_ptr<VerilatedContext> context;
  std::unique_ptr<Top> owned;
  Top& top;
  MemoryPort ports[2];
  AxiMemory<MemoryPort> memories[2];
  AxilMaster<Top> bus;
  // what it sent in the last clock
  Flit to_before{};
  Flit to_next{};
};

// A device and the wires that leave it.
struct Place {
  Place(std::uint8_t* bytes, std::uint64_t size, std::uint32_t latency, std::uint32_t seed)
      : node(bytes, size, seed), to_next(latency, seed + 2), to_before(latency, seed + 3) {}

  Node node;
  Wire to_next;
  Wire to_before;
};

class Ring {
 public:
  Ring(std::uint32_t devices, std::uint8_t* bytes, std::uint64_t size, std::uint32_t latency,
       std::uint32_t seed) {
    for (std::uint32_t i = 0; i < devices; ++i)
      places.push_back(std::make_unique<Place>(bytes + i * size, size, latency, seed + 8 * i));
    for (std::uint32_t i = 0; i < latency + 8; ++i) clock();
    for (auto& place : places) place->node.top.rst = 0;
  }

  std::vector<std::unique_ptr<Place>> places;
  Faults faults;
  std::uint64_t now = 0;

  void clock() {
    ++now;
    const std::size_t count = places.size();
    struct Arrivals {
      const Flit* from_before;
      const Flit* from_next;
    };
    std::vector<Arrivals> arrivals(count);
    for (std::size_t i = 0; i < count; ++i) {
      arrivals[(i + 1) % count].from_before = places[i]->to_next.drive(faults);
      arrivals[(i + count - 1) % count].from_next = places[i]->to_before.drive(faults);
    }
    for (std::size_t i = 0; i < count; ++i) {
      Place& place = *places[i];
      place.node.clock(arrivals[i].from_before, arrivals[i].from_next, place.to_before.ready,
                       place.to_next.ready);
      place.to_next.sample(place.node.to_next, faults);
      place.to_before.sample(place.node.to_before, faults);
    }
  }
};

Node& node_of(void* device) { return *static_cast<Node*>(device); }

const Flit* flit_of(const std::uint32_t* words, Flit& flit) {
  if (words == nullptr) return nullptr;
  std::copy_n(words, sizeof(Flit) / sizeof *words, &flit[0]);
  return &flit;
}

constexpr RingDevice kDevice{
    RingDevice::kAbi,
    kFlitBits,
    [](void* device, const std::uint32_t* from_before, const std::uint32_t* from_next,
       std::uint32_t before_ready, std::uint32_t next_ready, std::uint32_t* to_before,
       std::uint32_t* to_next) {
      Node& node = node_of(device);
      Flit before{};
      Flit next{};
      node.clock(flit_of(from_before, before), flit_of(from_next, next), before_ready != 0,
                 next_ready != 0);
      std::copy_n(&node.to_before[0], sizeof(Flit) / sizeof *to_before, to_before);
      std::copy_n(&node.to_next[0], sizeof(Flit) / sizeof *to_next, to_next);
    },
    [](void* device, std::uint32_t address, std::uint32_t value) {
      node_of(device).bus.begin_write(address, value, 0xF);
    },
    [](void* device, std::uint32_t address) { node_of(device).bus.begin_read(address); },
    [](void* device, std::uint32_t* value) {
      *value = node_of(device).bus.value();
      return node_of(device).bus.response();
    },
    [](void* device) { node_of(device).bus.give_up(); },
    [](void* device) -> std::uint32_t { return node_of(device).top.irq != 0 ? 1 : 0; },
};

std::uint64_t broken_laws(const Node& node) {
  std::uint64_t broken = 0;
  for (const auto& memory : node.memories)
    broken += memory.counts.broken_laws + memory.counts.errors;
  return broken;
}

}  // namespace

extern "C" {

const RingDevice* catchment_ring_device() { return &kDevice; }

// `bytes`: the device's memory of `size`, with `latency` clocks; it belongs to the caller.
Node* node_new(std::uint8_t* bytes, std::uint64_t size, std::uint32_t latency, std::uint32_t seed) {
  auto node = std::make_unique<Node>(bytes, size, seed);
  for (auto& memory : node->memories) memory.pace = MemoryPace{latency, 0, 0, 0};
  for (int i = 0; i < 16; ++i) node->clock(nullptr, nullptr, true, true);
  node->top.rst = 0;
  return node.release();
}

void node_delete(Node* node) { const std::unique_ptr<Node> owned(node); }

std::uint64_t node_broken_laws(const Node* node) { return broken_laws(*node); }

// `bytes`: the devices' memories of `size` each, one behind the other; they belong to the caller.
Ring* ring_new(std::uint32_t devices, std::uint8_t* bytes, std::uint64_t size,
               std::uint32_t latency, std::uint32_t seed) {
  return std::make_unique<Ring>(devices, bytes, size, latency, seed).release();
}

void ring_delete(Ring* ring) { const std::unique_ptr<Ring> owned(ring); }

void ring_faults(Ring* ring, std::uint32_t damage, std::uint32_t lose, std::uint32_t stall) {
  ring->faults = {damage, lose, stall};
}

void ring_pace(Ring* ring, std::uint32_t latency, std::uint32_t stall) {
  for (auto& place : ring->places)
    for (auto& memory : place->node.memories)
      memory.pace = MemoryPace{latency, stall, stall, stall};
}

void ring_begin_write(Ring* ring, std::uint32_t device, std::uint32_t address,
                      std::uint32_t value) {
  ring->places[device]->node.bus.begin_write(address, value, 0xF);
}

void ring_begin_read(Ring* ring, std::uint32_t device, std::uint32_t address) {
  ring->places[device]->node.bus.begin_read(address);
}

// Clocks until every access begun has been answered, `limit` at most; 0: one has not.
std::uint32_t ring_finish(Ring* ring, std::uint32_t limit) {
  for (; limit != 0; --limit) {
    bool busy = false;
    for (auto& place : ring->places) busy = busy || place->node.bus.busy();
    if (!busy) return 1;
    ring->clock();
  }
  return 0;
}

std::uint32_t ring_answer(Ring* ring, std::uint32_t device, std::uint32_t* value) {
  *value = ring->places[device]->node.bus.value();
  return ring->places[device]->node.bus.response();
}

// `clocks` pass, or fewer: until the interrupt of every device is raised. Whether it is.
std::uint32_t ring_run(Ring* ring, std::uint32_t clocks, std::uint32_t until_all) {
  for (;; --clocks) {
    bool all = until_all != 0;
    for (auto& place : ring->places) all = all && place->node.top.irq != 0;
    if (all) return 1;
    if (clocks == 0) return 0;
    ring->clock();
  }
}

std::uint64_t ring_now(const Ring* ring) { return ring->now; }

// Bursts that broke AXI4's rules, and beats outside memory.
std::uint64_t ring_broken_laws(const Ring* ring) {
  std::uint64_t broken = 0;
  for (const auto& place : ring->places) broken += broken_laws(place->node);
  return broken;
}
}
