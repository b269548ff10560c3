// A Verilated WorkerNIC or AggNIC with its host's memory, its registers' master and its MAC, behind
// C functions. Several of them live in one process; each has its own clock, which runs when the
// caller says so.
#include <algorithm>
#include <cstring>
#include <memory>

#include "rtl/harness/top.hpp"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif
#include "rtl/harness/axi_memory.hpp"
#include "rtl/harness/axil_master.hpp"
#include "rtl/harness/device.hpp"
#include "rtl/harness/mac.hpp"

namespace {

using catchment::rtl::AxilMaster;
using catchment::rtl::AxiMemory;
using catchment::rtl::Beat;
using catchment::rtl::Device;
using catchment::rtl::Frame;
using catchment::rtl::Mac;
using catchment::rtl::MemoryCounts;
using catchment::rtl::MemoryPace;

// Clocks of the first and the last beat on each port since they were read last; 0: none.
struct Marks {
  std::uint64_t ask_first, ask_last;      // read addresses to memory
  std::uint64_t read_first, read_last;    // from memory
  std::uint64_t write_first, write_last;  // to memory
  std::uint64_t tx_first, tx_last;        // to the MAC
  std::uint64_t rx_first, rx_last;        // from the MAC
};

class Nic {
 public:
  Nic(std::uint8_t* bytes, std::uint64_t base, std::uint64_t size, std::uint32_t seed)
      : memory(bytes, base, size, seed), mac(seed + 1), context_(powered_up(seed + 2)) {}

  AxiMemory<Top> memory;
  Mac<Top> mac;
  Marks marks{};
  std::uint64_t now = 0;

  void reset(std::uint32_t clocks) {
    begin_reset(*top_);
    run(clocks);
    top_->rst = 0;
  }

  void run(std::uint32_t clocks) {
    for (; clocks != 0; --clocks) clock();
  }

  // What the slave answered, kNoAnswer when it did not.
  std::uint32_t access() {
    for (int i = 0; i < 1000 && master_.busy(); ++i) clock();
    const std::uint32_t response = master_.response();
    master_.give_up();
    return response;
  }

  // Runs one clock with the caller's MAC; true when a beat left.
  bool clock_with(const Beat* rx, bool tx_ready, Beat& tx) {
    Top& top = *top_;
    if (rx != nullptr) {
      std::memcpy(&top.s_axis_rx_tdata, rx->data, sizeof rx->data);
      top.s_axis_rx_tkeep = rx->keep;
      top.s_axis_rx_tlast = rx->last != 0;
      top.s_axis_rx_tuser = rx->user != 0;
    }
    top.s_axis_rx_tvalid = rx != nullptr;
    top.m_axis_tx_tready = tx_ready;
    settle();
    const bool moved = tx_ready && top.m_axis_tx_tvalid != 0;
    if (moved) {
      std::memcpy(tx.data, &top.m_axis_tx_tdata, sizeof tx.data);
      tx.keep = top.m_axis_tx_tkeep;
      tx.last = top.m_axis_tx_tlast;
      tx.user = top.m_axis_tx_tuser;
    }
    edge();
    return moved;
  }

  AxilMaster<Top>& master() { return master_; }
  [[nodiscard]] bool irq() const { return top_->irq != 0; }

 private:
  void clock() {
    mac.drive(*top_);
    settle();
    mac.sample(*top_);
    edge();
  }

  // Up to the clock's edge: all but the MAC is driven and sampled.
  void settle() {
    Top& top = *top_;
    ++now;
    memory.drive(top);
    master_.drive(top);
    top.clk = 0;
    top.eval();
    mark();
    memory.sample(top);
    master_.sample(top);
  }

  void edge() {
    note(0);
    top_->clk = 1;
    top_->eval();
    note(kPicos / 2);
  }

#if VM_TRACE_FST
 public:
  void trace(const char* path) {
    context_->traceEverOn(true);
    trace_ = std::make_unique<VerilatedFstC>();
    top_->trace(trace_.get(), kDepth);
    trace_->open(path);
  }
  void end_trace() {
    if (trace_) trace_->close();
    trace_.reset();
  }

 private:
  static constexpr int kDepth = 99;
  std::unique_ptr<VerilatedFstC> trace_;

  void note(std::uint64_t later) {
    if (trace_) trace_->dump(now * kPicos + later);
  }
#else
  void note(std::uint64_t /*later*/) {}
#endif
  static constexpr std::uint64_t kPicos = 4000;  // a clock in waveforms

  void mark() {
    const Top& top = *top_;
    const auto beat = [&](bool moves, std::uint64_t& first, std::uint64_t& last) {
      if (!moves) return;
      if (first == 0) first = now;
      last = now;
    };
    beat(top.m_axi_arvalid && top.m_axi_arready, marks.ask_first, marks.ask_last);
    beat(top.m_axi_rvalid && top.m_axi_rready, marks.read_first, marks.read_last);
    beat(top.m_axi_wvalid && top.m_axi_wready, marks.write_first, marks.write_last);
    beat(top.m_axis_tx_tvalid && top.m_axis_tx_tready, marks.tx_first, marks.tx_last);
    beat(top.s_axis_rx_tvalid && top.s_axis_rx_tready, marks.rx_first, marks.rx_last);
  }

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Top> top_ = std::make_unique<Top>(context_.get());
  AxilMaster<Top> master_;
};

Nic& nic_of(void* device) { return *static_cast<Nic*>(device); }

constexpr Device kDevice = {
    .abi = Device::kAbi,
    .clock = [](void* device, const Beat* rx, std::uint32_t tx_ready, Beat* tx) -> std::uint32_t {
      return nic_of(device).clock_with(rx, tx_ready != 0, *tx) ? 1 : 0;
    },
    .begin_write =
        [](void* device, std::uint32_t address, std::uint32_t value) {
          nic_of(device).master().begin_write(address, value, 0xF);
        },
    .begin_read = [](void* device,
                     std::uint32_t address) { nic_of(device).master().begin_read(address); },
    .answer = [](void* device, std::uint32_t* value) -> std::uint32_t {
      *value = nic_of(device).master().value();
      return nic_of(device).master().response();
    },
    .give_up = [](void* device) { nic_of(device).master().give_up(); },
};

}  // namespace

extern "C" {

const Device* catchment_device() { return &kDevice; }

Nic* nic_new(std::uint8_t* bytes, std::uint64_t base, std::uint64_t size, std::uint32_t seed) {
  return std::make_unique<Nic>(bytes, base, size, seed).release();
}

// 0: this library was built without waveforms.
std::uint32_t nic_trace([[maybe_unused]] Nic* nic, [[maybe_unused]] const char* path) {
#if VM_TRACE_FST
  nic->trace(path);
  return 1;
#else
  return 0;
#endif
}

void nic_end_trace([[maybe_unused]] Nic* nic) {
#if VM_TRACE_FST
  nic->end_trace();
#endif
}

void nic_delete(Nic* nic) { const std::unique_ptr<Nic> owned(nic); }

void nic_reset(Nic* nic, std::uint32_t clocks) { nic->reset(clocks); }

void nic_run(Nic* nic, std::uint32_t clocks) { nic->run(clocks); }

std::uint64_t nic_now(const Nic* nic) { return nic->now; }

std::uint32_t nic_irq(const Nic* nic) { return nic->irq() ? 1 : 0; }

std::uint32_t nic_write(Nic* nic, std::uint32_t address, std::uint32_t value,
                        std::uint32_t strobes) {
  nic->master().begin_write(address, value, strobes);
  return nic->access();
}

std::uint32_t nic_read(Nic* nic, std::uint32_t address, std::uint32_t* value) {
  nic->master().begin_read(address);
  const std::uint32_t response = nic->access();
  *value = nic->master().value();
  return response;
}

void nic_receive(Nic* nic, const std::uint8_t* bytes, std::uint32_t count, std::uint32_t bad) {
  Frame frame;
  frame.bytes.assign(bytes, bytes + count);
  frame.bad = bad != 0;
  nic->mac.to_nic.push_back(std::move(frame));
}

// Frames that wait for the NIC, the one that is on its way included.
std::uint64_t nic_waiting(const Nic* nic) { return nic->mac.to_nic.size(); }

// Bytes of the oldest frame sent, 0 if there is none; `clocks` are those of its first and last
// beat.
std::uint32_t nic_take(Nic* nic, std::uint8_t* bytes, std::uint32_t room, std::uint64_t* clocks,
                       std::uint32_t* bad) {
  if (nic->mac.from_nic.empty()) return 0;
  const Frame frame = std::move(nic->mac.from_nic.front());
  nic->mac.from_nic.pop_front();
  const std::size_t count = std::min<std::size_t>(room, frame.bytes.size());
  std::copy_n(frame.bytes.begin(), count, bytes);
  clocks[0] = frame.first;
  clocks[1] = frame.last;
  *bad = frame.bad ? 1 : 0;
  return static_cast<std::uint32_t>(count);
}

void nic_pace(Nic* nic, const MemoryPace* pace, std::uint32_t tx_stall, std::uint32_t rx_idle) {
  nic->memory.pace = *pace;
  nic->mac.tx_stall = tx_stall;
  nic->mac.rx_idle = rx_idle;
}

void nic_errors(Nic* nic, std::uint64_t begin, std::uint64_t end) {
  nic->memory.error_begin = begin;
  nic->memory.error_end = end;
}

void nic_counts(const Nic* nic, MemoryCounts* counts) { *counts = nic->memory.counts; }

void nic_marks(Nic* nic, Marks* marks) {
  *marks = nic->marks;
  nic->marks = Marks{};
}
}
