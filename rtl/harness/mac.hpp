// The MAC at a NIC: frames in and out by queues, with gaps, and the clocks at which they passed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace catchment::rtl {

struct Frame {
  std::vector<std::uint8_t> bytes;
  bool bad = false;         // damaged on its way in, or cut on its way out
  std::uint64_t first = 0;  // clock of its first beat
  std::uint64_t last = 0;   // and of its last
};

template <typename Top>
class Mac {
 public:
  static constexpr std::size_t kBeat = 64;

  explicit Mac(std::uint32_t seed) : random_(seed) {}

  std::uint32_t tx_stall = 0;  // of 256 clocks: no beat is taken from the NIC
  std::uint32_t rx_idle = 0;   // of 256 clocks: no beat comes, once a frame has begun too
  std::deque<Frame> to_nic;
  std::deque<Frame> from_nic;

  // A frame is part of the way into the NIC, or waits.
  [[nodiscard]] bool busy() const { return !to_nic.empty(); }

  void drive(Top& top) {
    ++clock_;
    top.m_axis_tx_tready = !gap(tx_stall);
    if (!offered_ && !to_nic.empty() && !gap(rx_idle)) offer(top);
    top.s_axis_rx_tvalid = offered_;
  }

  void sample(const Top& top) {
    if (offered_ && top.s_axis_rx_tready) {
      offered_ = false;
      place_ += kBeat;
      if (place_ >= to_nic.front().bytes.size()) {
        to_nic.pop_front();
        place_ = 0;
      }
    }
    if (top.m_axis_tx_tvalid && top.m_axis_tx_tready) take(top);
  }

 private:
  bool gap(std::uint32_t of256) { return of256 != 0 && (random_() & 255U) < of256; }

  void offer(Top& top) {
    const Frame& frame = to_nic.front();
    const std::size_t count = std::min(kBeat, frame.bytes.size() - place_);
    const bool last = place_ + count == frame.bytes.size();
    std::uint8_t beat[kBeat];
    for (std::uint8_t& byte : beat)
      byte = static_cast<std::uint8_t>(random_());  // what is not kept is noise
    std::memcpy(beat, frame.bytes.data() + place_, count);
    std::memcpy(&top.s_axis_rx_tdata, beat, kBeat);
    top.s_axis_rx_tkeep = count == kBeat ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    top.s_axis_rx_tlast = last;
    top.s_axis_rx_tuser = last && frame.bad;
    offered_ = true;
  }

  void take(const Top& top) {
    if (part_.bytes.empty()) part_.first = clock_;
    std::uint8_t beat[kBeat];
    std::memcpy(beat, &top.m_axis_tx_tdata, kBeat);
    const std::uint64_t keep = top.m_axis_tx_tkeep;
    for (std::size_t i = 0; i < kBeat; ++i) {
      if ((keep >> i & 1U) != 0) part_.bytes.push_back(beat[i]);
    }
    if (top.m_axis_tx_tlast == 0) return;
    part_.bad = top.m_axis_tx_tuser != 0;
    part_.last = clock_;
    from_nic.push_back(std::move(part_));
    part_ = Frame{};
  }

  std::mt19937 random_;
  std::uint64_t clock_ = 0;
  std::size_t place_ = 0;
  bool offered_ = false;
  Frame part_;
};

}  // namespace catchment::rtl
