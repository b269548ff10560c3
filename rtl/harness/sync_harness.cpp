// Devices of a ring, each a Verilated sync_node with its memory, and the links between them, on one
// clock and behind C functions. Links have a latency; flits on them may be damaged, lost or held
// back.
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "rtl/harness/axi_memory.hpp"
#include "rtl/harness/axil_master.hpp"
#include "rtl/harness/top.hpp"

namespace {

using catchment::rtl::AxilMaster;
using catchment::rtl::AxiMemory;
using catchment::rtl::MemoryPace;

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
  static constexpr std::uint32_t kFlitBits = 589;
  static_assert(sizeof(Flit) == (kFlitBits + 31) / 32 * 4);

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
  Node(std::uint8_t* bytes, std::uint64_t size, std::uint32_t latency, std::uint32_t seed)
      : ports{port(top, 0), port(top, 1)},
        memories{AxiMemory<MemoryPort>(bytes, 0, size, seed),
                 AxiMemory<MemoryPort>(bytes, 0, size, seed + 1)},
        to_next(latency, seed + 2),
        to_before(latency, seed + 3) {}

  std::unique_ptr<VerilatedContext> context = std::make_unique<VerilatedContext>();
  std::unique_ptr<Top> owned = std::make_unique<Top>(context.get());
  Top& top = *owned;
  MemoryPort ports[2];
  AxiMemory<MemoryPort> memories[2];
  AxilMaster<Top> bus;
  Wire to_next;
  Wire to_before;
};

class Ring {
 public:
  Ring(std::uint32_t devices, std::uint8_t* bytes, std::uint64_t size, std::uint32_t latency,
       std::uint32_t seed) {
    for (std::uint32_t i = 0; i < devices; ++i)
      nodes.push_back(std::make_unique<Node>(bytes + i * size, size, latency, seed + 8 * i));
    for (auto& node : nodes) node->top.rst = 1;
    for (std::uint32_t i = 0; i < latency + 8; ++i) clock();
    for (auto& node : nodes) node->top.rst = 0;
  }

  std::vector<std::unique_ptr<Node>> nodes;
  Faults faults;
  std::uint64_t now = 0;

  void clock() {
    ++now;
    const std::size_t count = nodes.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Flit* flit = nodes[i]->to_next.drive(faults);
      Top& next = nodes[(i + 1) % count]->top;
      next.before_rx_valid = flit != nullptr;
      if (flit != nullptr) next.before_rx = *flit;
      flit = nodes[i]->to_before.drive(faults);
      Top& before = nodes[(i + count - 1) % count]->top;
      before.next_rx_valid = flit != nullptr;
      if (flit != nullptr) before.next_rx = *flit;
    }
    for (auto& node : nodes) {
      Top& top = node->top;
      top.next_tx_ready = node->to_next.ready;
      top.before_tx_ready = node->to_before.ready;
      node->bus.drive(top);
      for (int core = 0; core < 2; ++core) node->memories[core].drive(node->ports[core]);
      top.clk = 0;
      top.eval();
      node->bus.sample(top);
      for (int core = 0; core < 2; ++core) node->memories[core].sample(node->ports[core]);
      node->to_next.sample(top.next_tx, faults);
      node->to_before.sample(top.before_tx, faults);
      top.clk = 1;
      top.eval();
    }
  }
};

}  // namespace

extern "C" {

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
  for (auto& node : ring->nodes)
    for (auto& memory : node->memories) memory.pace = MemoryPace{latency, stall, stall, stall};
}

void ring_begin_write(Ring* ring, std::uint32_t device, std::uint32_t address,
                      std::uint32_t value) {
  ring->nodes[device]->bus.begin_write(address, value, 0xF);
}

void ring_begin_read(Ring* ring, std::uint32_t device, std::uint32_t address) {
  ring->nodes[device]->bus.begin_read(address);
}

// Clocks until every access begun has been answered, `limit` at most; 0: one has not.
std::uint32_t ring_finish(Ring* ring, std::uint32_t limit) {
  for (; limit != 0; --limit) {
    bool busy = false;
    for (auto& node : ring->nodes) busy = busy || node->bus.busy();
    if (!busy) return 1;
    ring->clock();
  }
  return 0;
}

std::uint32_t ring_answer(Ring* ring, std::uint32_t device, std::uint32_t* value) {
  *value = ring->nodes[device]->bus.value();
  return ring->nodes[device]->bus.response();
}

// `clocks` pass, or fewer: until the interrupt of every device is raised. Whether it is.
std::uint32_t ring_run(Ring* ring, std::uint32_t clocks, std::uint32_t until_all) {
  for (;; --clocks) {
    bool all = until_all != 0;
    for (auto& node : ring->nodes) all = all && node->top.irq != 0;
    if (all) return 1;
    if (clocks == 0) return 0;
    ring->clock();
  }
}

std::uint64_t ring_now(const Ring* ring) { return ring->now; }

// Bursts that broke AXI4's rules, and beats outside memory.
std::uint64_t ring_broken_laws(const Ring* ring) {
  std::uint64_t broken = 0;
  for (const auto& node : ring->nodes)
    for (const auto& memory : node->memories)
      broken += memory.counts.broken_laws + memory.counts.errors;
  return broken;
}
}
