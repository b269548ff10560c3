// A Verilated worker of P4SGD with the memories of its engines and its MAC, behind C functions.
// Several of them live in one process; each has its own clock, which runs when the caller says so.
#include <algorithm>
#include <memory>

#include "rtl/harness/mac.hpp"
#include "rtl/harness/read_port.hpp"
#include "rtl/harness/top.hpp"

namespace {

using catchment::rtl::Frame;
using catchment::rtl::Mac;
using catchment::rtl::ReadPort;

constexpr std::size_t kRowWords = 16;

// What happens in a worker, in the order of worker_events_t, the last first.
constexpr std::size_t kEvents = 4;

template <typename Port>
void set(Port& port, const std::uint32_t* words) {
  std::memcpy(&port, words, sizeof port);
}

class Worker {
 public:
  Worker(std::uint32_t engines, std::uint32_t seed)
      : mac(seed), context_(powered_up(seed + engines + 2)) {
    for (std::uint32_t e = 0; e < engines; ++e) ports.emplace_back(seed + 1 + e);
    labels.reseed(seed + engines + 1);
    top_->start = top_->stop = top_->clear = top_->model_write = 0;
    std::memset(&top_->rounds, 0, sizeof top_->rounds);
  }

  Mac<Top> mac;
  std::vector<ReadPort> ports;
  ReadPort labels{0};
  std::vector<std::uint64_t> events[kEvents];
  std::uint64_t now = 0;
  std::uint64_t last_received = 0;  // clock of the last beat from the MAC

  Top& top() { return *top_; }

  void reset(std::uint32_t clocks) {
    begin_reset(*top_);
    for (; clocks != 0; --clocks) clock();
    top_->rst = 0;
  }

  void start() {
    top_->start = 1;
    clock();
    top_->start = 0;
    clock();  // busy is high from here
  }

  void clock() {
    Top& top = *top_;
    ++now;
    mac.drive(top);
    std::uint32_t arready = 0;
    std::uint32_t rvalid = 0;
    std::uint32_t rlast = 0;
    std::uint32_t rresp = 0;
    for (std::size_t e = 0; e < ports.size(); ++e) {
      ReadPort& port = ports[e];
      port.drive();
      arready |= std::uint32_t{port.ready} << e;
      rvalid |= std::uint32_t{port.valid} << e;
      rlast |= std::uint32_t{port.last} << e;
      rresp |= std::uint32_t{port.error ? 2U : 0U} << 2 * e;
      if (port.valid)
        std::memcpy(bytes(top.m_axi_rdata) + ReadPort::kBeat * e, port.data, ReadPort::kBeat);
    }
    std::memcpy(&top.m_axi_arready, &arready, sizeof top.m_axi_arready);
    std::memcpy(&top.m_axi_rvalid, &rvalid, sizeof top.m_axi_rvalid);
    std::memcpy(&top.m_axi_rlast, &rlast, sizeof top.m_axi_rlast);
    std::memcpy(&top.m_axi_rresp, &rresp, sizeof top.m_axi_rresp);
    labels.drive();
    top.m_axi_label_arready = labels.ready;
    top.m_axi_label_rvalid = labels.valid;
    top.m_axi_label_rlast = labels.last;
    top.m_axi_label_rresp = labels.error ? 2 : 0;
    if (labels.valid) std::memcpy(&top.m_axi_label_rdata, labels.data, ReadPort::kBeat);
    top.clk = 0;
    top.eval();
    mac.sample(top);
    for (std::size_t e = 0; e < ports.size(); ++e) {
      std::uint64_t address = 0;
      std::memcpy(&address, bytes(top.m_axi_araddr) + 8 * e, sizeof address);
      ports[e].sample((top.m_axi_arvalid >> e & 1U) != 0, address, bytes(top.m_axi_arlen)[e],
                      (top.m_axi_rready >> e & 1U) != 0);
    }
    labels.sample(top.m_axi_label_arvalid != 0, top.m_axi_label_araddr, top.m_axi_label_arlen,
                  top.m_axi_label_rready != 0);
    for (std::size_t i = 0; i < kEvents; ++i) {
      if ((top.events >> i & 1U) != 0) events[i].push_back(now);
    }
    if (top.s_axis_rx_tvalid && top.s_axis_rx_tlast) last_received = now;
    top.clk = 1;
    top.eval();
  }

 private:
  template <typename Port>
  static std::uint8_t* bytes(Port& port) {
    return reinterpret_cast<std::uint8_t*>(&port);
  }

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Top> top_ = std::make_unique<Top>(context_.get());
};

}  // namespace

extern "C" {

Worker* glm_new(std::uint32_t engines, std::uint32_t seed) {
  return std::make_unique<Worker>(engines, seed).release();
}

void glm_delete(Worker* worker) { const std::unique_ptr<Worker> owned(worker); }

// `bytes` belong to the caller; the port after the engines' is that of the labels.
void glm_memory(Worker* worker, std::uint32_t port, const std::uint8_t* bytes, std::uint64_t base,
                std::uint64_t size) {
  (port < worker->ports.size() ? worker->ports[port] : worker->labels).attach(bytes, base, size);
}

void glm_pace(Worker* worker, std::uint32_t latency, std::uint32_t stall, std::uint32_t tx_stall) {
  for (ReadPort& port : worker->ports) port.pace(latency, stall);
  worker->labels.pace(latency, stall);
  worker->mac.tx_stall = tx_stall;
}

void glm_reset(Worker* worker, std::uint32_t clocks) { worker->reset(clocks); }

void glm_rounds(Worker* worker, const std::uint32_t* words) { set(worker->top().rounds, words); }

void glm_training(Worker* worker, const std::uint32_t* words, const std::uint64_t* bases) {
  set(worker->top().training, words);
  std::memcpy(&worker->top().base, bases, 8 * worker->ports.size());
  worker->top().label_base = bases[worker->ports.size()];
}

void glm_start(Worker* worker) { worker->start(); }

std::uint32_t glm_busy(Worker* worker) { return worker->top().busy; }

std::uint64_t glm_now(const Worker* worker) { return worker->now; }

// `clocks` pass, or fewer: until a frame has left.
void glm_run(Worker* worker, std::uint32_t clocks, std::uint32_t until_sent) {
  for (; clocks != 0 && (until_sent == 0 || worker->mac.from_nic.empty()); --clocks)
    worker->clock();
}

void glm_receive(Worker* worker, const std::uint8_t* bytes, std::uint32_t count) {
  Frame frame;
  frame.bytes.assign(bytes, bytes + count);
  worker->mac.to_nic.push_back(std::move(frame));
}

// Bytes of the oldest frame sent, 0 if there is none; `clock` is that of its last beat.
std::uint32_t glm_take(Worker* worker, std::uint8_t* bytes, std::uint32_t room,
                       std::uint64_t* clock) {
  if (worker->mac.from_nic.empty()) return 0;
  const Frame frame = std::move(worker->mac.from_nic.front());
  worker->mac.from_nic.pop_front();
  const std::size_t count = std::min<std::size_t>(room, frame.bytes.size());
  std::copy_n(frame.bytes.begin(), count, bytes);
  *clock = frame.last;
  return static_cast<std::uint32_t>(count);
}

void glm_write_row(Worker* worker, std::uint32_t engine, std::uint32_t row,
                   const std::uint32_t* words) {
  Top& top = worker->top();
  top.model_engine = engine;
  top.model_row = row;
  std::memcpy(&top.model_in, words, 4 * kRowWords);
  top.model_write = 1;
  worker->clock();
  top.model_write = 0;
}

void glm_read_row(Worker* worker, std::uint32_t engine, std::uint32_t row, std::uint32_t* words) {
  Top& top = worker->top();
  top.model_engine = engine;
  top.model_row = row;
  for (int i = 0; i < 5; ++i) worker->clock();
  std::memcpy(words, &top.model_out, 4 * kRowWords);
}

// The packed struct, low word first.
void glm_counts(Worker* worker, std::uint32_t* words) {
  std::memcpy(words, &worker->top().counts, sizeof worker->top().counts);
}

// Clocks at which an event was, since it was asked last; as many as there is room for.
std::uint32_t glm_events(Worker* worker, std::uint32_t event, std::uint64_t* clocks,
                         std::uint32_t room) {
  std::vector<std::uint64_t>& all = worker->events[event];
  const std::size_t count = std::min<std::size_t>(room, all.size());
  std::copy_n(all.begin(), count, clocks);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<std::uint32_t>(count);
}

std::uint64_t glm_last_received(const Worker* worker) { return worker->last_received; }

// Bursts that broke AXI4's rules: an address off its beat, 4 KiB crossed, memory that is not there.
std::uint64_t glm_broken_laws(const Worker* worker) {
  std::uint64_t broken = worker->labels.broken_laws;
  for (const ReadPort& port : worker->ports) broken += port.broken_laws;
  return broken;
}
}
