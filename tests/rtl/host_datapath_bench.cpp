// host_datapath with memory on one side and, in place of a network, a queue from its transmitter to
// its receiver.
#include <algorithm>
#include <deque>
#include <memory>

#include "rtl/harness/axi_memory.hpp"
#include "rtl/harness/top.hpp"

using catchment::rtl::AxiMemory;
using catchment::rtl::MemoryCounts;
using catchment::rtl::WriteEvent;

// As Python lays them out.
struct Request {
  std::uint64_t vaddr;
  std::uint64_t cmpt_ptr;
  std::uint32_t len;
  std::uint16_t tag;
  std::uint8_t dtype;
  std::int8_t exponent;
  std::uint32_t pull;   // 0: push
  std::uint32_t wait;   // clocks after the request before
  std::uint32_t remap;  // 1: no request; take vaddr's page out of the TLB.  2: map it to cmpt_ptr.
                        // 3: soft reset
  std::uint32_t force;  // ring although the queue is full
  std::uint32_t block;  // block-scaled
};

struct Options {
  std::uint64_t base;
  std::uint64_t size;
  std::uint64_t error_begin;
  std::uint64_t error_end;
  std::uint32_t latency;
  std::uint32_t read_stall;
  std::uint32_t write_stall;
  std::uint32_t address_stall;
  std::uint32_t link_stall;  // of 256 clocks: the queue takes nothing, and gives nothing
  std::uint32_t headroom;
  std::uint32_t seed;
  std::uint32_t clocks;  // at most
  std::uint32_t quiet;   // end after so many clocks in which nothing moves
  std::uint32_t queue;   // beats between transmitter and receiver
  std::uint32_t slots;   // T; 0: not in all-reduce
  std::uint32_t pairs;   // packed lanes; 2: of 2^h workers
};

struct Outcome {
  std::uint64_t clocks;
  std::uint64_t completions;
  std::uint64_t refused;
  std::uint64_t missed;
  std::uint64_t unanswerable;
  std::uint64_t vectors;
  std::uint64_t push_beats;    // that left for the transport
  std::uint64_t first_vector;  // clock of the first beat to the transport
  std::uint64_t last_vector;
  std::uint64_t first_ring;
  std::uint64_t first_read_beat;
  std::uint64_t first_written_beat;
  std::uint64_t first_pull_beat;  // from the transport
  std::uint64_t not_idle_at_reset;
  std::uint64_t writes_logged;
  MemoryCounts memory;
};

namespace {

struct Vector {
  std::uint32_t data[16];
  std::uint64_t meta;
  bool last;
};

void set_request(WData* to, const Request& request) {
  std::fill_n(to, 8, 0U);
  unsigned at = 32;  // request_t from its end: behind `started`, which the queue fills in
  const auto put = [&](std::uint64_t value, unsigned width) {
    for (unsigned bit = 0; bit < width; ++bit, ++at) {
      to[at / 32] |= static_cast<WData>(value >> bit & 1U) << (at % 32);
    }
  };
  put(request.tag, 16);
  put(request.block, 1);
  put(static_cast<std::uint8_t>(request.exponent), 8);
  put(request.dtype, 8);
  put(request.cmpt_ptr, 64);
  put(request.len, 32);
  put(request.vaddr, 64);
}

class Bench {
 public:
  Bench(std::uint8_t* memory, const Options& options)
      : options_(options),
        memory_(memory, options.base, options.size, options.seed),
        random_(options.seed + 1) {
    memory_.pace = {options.latency, options.read_stall, options.write_stall,
                    options.address_stall};
    memory_.log = &log_;
    memory_.error_begin = options.error_begin;
    memory_.error_end = options.error_end;
  }

  void run(const Request* requests, std::uint64_t count, Outcome& outcome) {
    Top& top = *top_;
    top.push_types = 0x1F;
    top.pull_types = 0x1F;
    top.push_headroom = options_.headroom;
    top.pull_headroom = options_.headroom;
    top.pairs = options_.pairs != 0;
    top.full = options_.pairs == 2;
    top.block_allowed = options_.slots != 0;
    top.slots = options_.slots;
    reset(outcome);
    std::uint64_t next = 0;
    std::uint64_t due = 0;
    while (clock_ < options_.clocks && quiet_ < options_.quiet) {
      if (next < count && clock_ >= due + requests[next].wait) {
        const Request& request = requests[next];
        if (apply(request, outcome)) {
          if (next == 0) outcome.first_ring = clock_;
          ++next;
          due = clock_;
          quiet_ = 0;
        }
      }
      edge(outcome);
      if (next < count) quiet_ = 0;
    }
    outcome.clocks = clock_;
    outcome.memory = memory_.counts;
  }

  void write_log(WriteEvent* to, std::uint64_t room, Outcome& outcome) const {
    outcome.writes_logged = std::min<std::uint64_t>(room, log_.size());
    std::copy_n(log_.begin(), outcome.writes_logged, to);
  }

 private:
  void reset(Outcome& outcome) {
    top_->rst = 1;
    for (int i = 0; i < 4; ++i) edge(outcome);
    top_->rst = 0;
    while (top_->fill_ready == 0) edge(outcome);
    quiet_ = 0;
  }

  // False: the queue is full or the TLB busy, try again.
  bool apply(const Request& request, Outcome& outcome) {
    Top& top = *top_;
    if (request.remap == 3) {
      top.hold = 1;
      edge(outcome);
      for (int i = 0; i < 100000 && top.idle == 0; ++i) edge(outcome);
      if (top.idle == 0) ++outcome.not_idle_at_reset;
      loop_.clear();
      pending_.clear();
      offered_ = false;
      reset(outcome);
      if (!memory_.quiet()) ++outcome.not_idle_at_reset;
      top.hold = 0;
      return true;
    }
    if (request.remap != 0) {
      top.fill_valid = 1;
      top.fill_vpn = request.vaddr >> 21U;
      top.fill_ppn = request.cmpt_ptr >> 21U;
      top.fill_present = request.remap == 2;
      return true;
    }
    if (request.pull != 0) {
      if (top.pull_free == 0 && request.force == 0) return false;
      set_request(top.pull_request, request);
      top.pull_ring = 1;
    } else {
      if (top.push_free == 0 && request.force == 0) return false;
      set_request(top.push_request, request);
      top.push_ring = 1;
    }
    return true;
  }

  bool gap(std::uint32_t of256) { return of256 != 0 && (random_() & 255U) < of256; }

  void edge(Outcome& outcome) {
    Top& top = *top_;
    ++clock_;
    ++quiet_;
    top.now = static_cast<std::uint32_t>(clock_);
    memory_.drive(top);
    top.m_axis_tready = loop_.size() < options_.queue && !gap(options_.link_stall);
    if (!offered_ && !loop_.empty() && !gap(options_.link_stall)) {
      std::memcpy(&top.s_axis_tdata, loop_.front().data, 64);
      top.s_axis_tuser = loop_.front().meta;
      top.s_axis_tlast = loop_.front().last;
      offered_ = true;
    }
    top.s_axis_tvalid = offered_;
    top.clk = 0;
    top.eval();
    if (top.rst == 0) observe(outcome);
    top.clk = 1;
    top.eval();
    top.push_ring = 0;
    top.pull_ring = 0;
    top.fill_valid = 0;
  }

  void observe(Outcome& outcome) {
    Top& top = *top_;
    const bool writes = top.m_axi_wvalid && top.m_axi_wready;
    if (writes && outcome.first_written_beat == 0) outcome.first_written_beat = clock_;
    const bool reads = top.m_axi_rvalid && top.m_axi_rready;
    if (reads && outcome.first_read_beat == 0) outcome.first_read_beat = clock_;
    memory_.sample(top);
    if (reads || writes || !memory_.quiet()) quiet_ = 0;
    if (offered_ && top.s_axis_tready) {
      offered_ = false;
      loop_.pop_front();
      quiet_ = 0;
      if (outcome.first_pull_beat == 0) outcome.first_pull_beat = clock_;
    }
    if (top.m_axis_tvalid && top.m_axis_tready) {
      Vector vector{};
      std::memcpy(vector.data, &top.m_axis_tdata, 64);
      vector.meta = top.m_axis_tuser;
      vector.last = top.m_axis_tlast != 0;
      pending_.push_back(vector);
      if (vector.last) {
        // The transport takes what it says from the vector's last beat, and gives it with every
        // beat.
        constexpr std::uint64_t kSat = 1U << 17U;  // may be said with any beat
        std::uint64_t meta = vector.meta;
        for (const Vector& beat : pending_) meta |= beat.meta & kSat;
        for (Vector& beat : pending_) {
          beat.meta = meta;
          loop_.push_back(beat);
        }
        pending_.clear();
        ++outcome.vectors;
      }
      ++outcome.push_beats;
      if (outcome.first_vector == 0) outcome.first_vector = clock_;
      outcome.last_vector = clock_;
      quiet_ = 0;
    }
    count(outcome);
  }

  void count(Outcome& outcome) {
    // host_events_t, least significant first: latency, nonfinite, saturated, bytes, status,
    // is_pull, lost, done
    const auto bit = [&](unsigned place) { return top_->events[place / 32] >> (place % 32) & 1U; };
    constexpr unsigned kDone = 32 * 4 + 8 + 2;
    outcome.completions += bit(kDone);
    outcome.unanswerable += bit(kDone + 2) + bit(kDone + 3);
    outcome.missed += bit(kDone + 4 + 128) + bit(kDone + 5 + 128);
    outcome.refused += bit(kDone + 6 + 128) + bit(kDone + 7 + 128);
  }

  Options options_;
  std::unique_ptr<Top> top_ = std::make_unique<Top>();
  AxiMemory<Top> memory_;
  std::mt19937 random_;
  std::vector<WriteEvent> log_;
  std::deque<Vector> loop_;
  std::deque<Vector> pending_;
  bool offered_ = false;
  std::uint64_t clock_ = 0;
  std::uint64_t quiet_ = 0;
};

}  // namespace

extern "C" void run(std::uint8_t* memory, const Options* options, const Request* requests,
                    std::uint64_t count, WriteEvent* log, std::uint64_t room, Outcome* outcome) {
  Bench bench(memory, *options);
  bench.run(requests, count, *outcome);
  bench.write_log(log, room, *outcome);
}
