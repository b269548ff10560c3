// Host memory behind a NIC's AXI4 master: bytes that belong to the caller, a latency, gaps, and
// addresses that answer with an error.  What is written is there only when the answer is given, so
// a completion that overtakes its data is seen. Whatever the master does against the protocol is
// counted.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace catchment::rtl {

struct MemoryPace {
  std::uint32_t latency =
      20;  // clocks from an address to its first beat, from the last beat to its answer
  std::uint32_t read_stall = 0;     // of 256 clocks: no beat comes
  std::uint32_t write_stall = 0;    // of 256 clocks: no beat is taken
  std::uint32_t address_stall = 0;  // of 256 clocks: no address is taken
};

struct MemoryCounts {
  std::uint64_t read_bursts = 0;
  std::uint64_t read_beats = 0;
  std::uint64_t write_bursts = 0;
  std::uint64_t write_beats = 0;
  std::uint64_t errors = 0;  // beats outside memory or in the region of errors
  std::uint64_t broken_laws =
      0;  // 4 KiB crossed, a wrong WLAST, an address off its beat, a beat without a request
};

// A write burst: when its address was given and when its answer was taken.
struct WriteEvent {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t issued;
  std::uint64_t answered;
};

template <typename Top>
class AxiMemory {
 public:
  static constexpr std::uint64_t kBeat = 64;

  AxiMemory(std::uint8_t* bytes, std::uint64_t base, std::uint64_t size, std::uint32_t seed)
      : bytes_(bytes), base_(base), size_(size), random_(seed) {}

  MemoryPace pace;
  MemoryCounts counts;
  // where not nullptr: a record of every write burst
  std::vector<WriteEvent>* log = nullptr;
  // addresses that answer with SLVERR
  std::uint64_t error_begin = 0;
  std::uint64_t error_end = 0;

  // Nothing is asked for that has not been answered.
  [[nodiscard]] bool quiet() const { return reads_.empty() && writes_.empty() && answers_.empty(); }

  // Sets the inputs of the next clock.
  void drive(Top& top) {
    ++clock_;
    top.m_axi_arready = !gap(pace.address_stall) && reads_.size() < 256;
    top.m_axi_awready = !gap(pace.address_stall) && writes_.size() < 64;
    top.m_axi_wready = !gap(pace.write_stall);
    if (!read_offered_ && !reads_.empty() && reads_.front().due <= clock_ && !gap(pace.read_stall))
      offer(top);
    top.m_axi_rvalid = read_offered_;
    if (!answer_offered_ && !answers_.empty() && answers_.front().due <= clock_) {
      commit(answers_.front());
      top.m_axi_bresp = answers_.front().error ? 2 : 0;
      answer_offered_ = true;
    }
    top.m_axi_bvalid = answer_offered_;
  }

  // Looks at the outputs before the clock's edge.
  void sample(const Top& top) {
    if (top.m_axi_arvalid && top.m_axi_arready) {
      reads_.push_back(begin(top.m_axi_araddr, top.m_axi_arlen));
      ++counts.read_bursts;
    }
    if (read_offered_ && top.m_axi_rready) {
      read_offered_ = false;
      ++counts.read_beats;
      Burst& burst = reads_.front();
      burst.address += kBeat;
      if (--burst.beats == 0) reads_.pop_front();
    }
    if (top.m_axi_awvalid && top.m_axi_awready) {
      writes_.push_back(begin(top.m_axi_awaddr, top.m_axi_awlen));
      ++counts.write_bursts;
    }
    if (top.m_axi_wvalid && top.m_axi_wready) {
      Beat beat{};
      std::memcpy(beat.data, &top.m_axi_wdata, kBeat);
      beat.strobes = top.m_axi_wstrb;
      beat.last = top.m_axi_wlast != 0;
      beats_.push_back(beat);
      ++counts.write_beats;
    }
    collect();
    if (answer_offered_ && top.m_axi_bready) {
      answer_offered_ = false;
      const Answer& answer = answers_.front();
      if (log != nullptr) {
        log->push_back({answer.address, answer.beats.size() * kBeat, answer.issued, clock_});
      }
      answers_.pop_front();
    }
  }

 private:
  struct Burst {
    std::uint64_t address;
    std::uint32_t beats;
    std::uint64_t issued;
    std::uint64_t due;
  };
  struct Beat {
    std::uint8_t data[kBeat];
    std::uint64_t strobes;
    bool last;
  };
  struct Answer {
    std::uint64_t address;
    std::vector<Beat> beats;
    std::uint64_t issued;
    std::uint64_t due;
    bool error;
  };

  bool gap(std::uint32_t of256) { return of256 != 0 && (random_() & 255U) < of256; }

  Burst begin(std::uint64_t address, std::uint32_t length) {
    const std::uint32_t beats = length + 1;
    if (address % kBeat != 0 || address % 4096 + beats * kBeat > 4096) ++counts.broken_laws;
    return {address, beats, clock_, clock_ + pace.latency};
  }

  [[nodiscard]] bool refused(std::uint64_t address) const {
    const bool outside = address < base_ || address + kBeat > base_ + size_;
    return outside || (address >= error_begin && address < error_end);
  }

  void offer(Top& top) {
    const Burst& burst = reads_.front();
    const bool error = refused(burst.address);
    if (error) {
      ++counts.errors;
      std::memset(&top.m_axi_rdata, 0xEE, kBeat);
    } else {
      std::memcpy(&top.m_axi_rdata, bytes_ + (burst.address - base_), kBeat);
    }
    top.m_axi_rresp = error ? 2 : 0;
    top.m_axi_rlast = burst.beats == 1;
    read_offered_ = true;
  }

  // A burst whose beats are all here is on its way to its answer.
  void collect() {
    while (!writes_.empty() && beats_.size() >= writes_.front().beats) {
      const Burst burst = writes_.front();
      writes_.pop_front();
      Answer answer{burst.address, {}, burst.issued, clock_ + pace.latency, false};
      for (std::uint32_t i = 0; i < burst.beats; ++i) {
        answer.beats.push_back(beats_.front());
        beats_.pop_front();
        if (answer.beats.back().last != (i + 1 == burst.beats)) ++counts.broken_laws;
        answer.error = answer.error || refused(burst.address + i * kBeat);
      }
      answers_.push_back(std::move(answer));
    }
  }

  void commit(const Answer& answer) {
    for (std::size_t i = 0; i < answer.beats.size(); ++i) {
      const std::uint64_t address = answer.address + i * kBeat;
      if (refused(address)) {
        ++counts.errors;
        continue;
      }
      for (std::uint64_t byte = 0; byte < kBeat; ++byte) {
        if ((answer.beats[i].strobes >> byte & 1U) != 0)
          bytes_[address - base_ + byte] = answer.beats[i].data[byte];
      }
    }
  }

  std::uint8_t* bytes_;
  std::uint64_t base_;
  std::uint64_t size_;
  std::mt19937 random_;
  std::uint64_t clock_ = 0;
  std::deque<Burst> reads_;
  std::deque<Burst> writes_;
  std::deque<Beat> beats_;
  std::deque<Answer> answers_;
  bool read_offered_ = false;
  bool answer_offered_ = false;
};

}  // namespace catchment::rtl
