// A Verilated transport behind queues: vectors and frames go in and come out, clock by clock, with
// random gaps on every port, and the laws of its outputs are checked.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

constexpr std::size_t kBeatBytes = 64;

struct Vector {
  std::vector<std::uint8_t> data;
  std::uint64_t meta = 0;
  std::uint64_t clock = 0;  // of its first beat
};

struct Frame {
  std::vector<std::uint8_t> bytes;
  bool damaged = false;
  std::uint64_t clock = 0;  // of its first beat
};

// Of 256 clocks: in how many nothing is offered or taken.
struct PortGaps {
  std::uint32_t host_idle = 0;
  std::uint32_t host_stall = 0;
  std::uint32_t net_idle = 0;
  std::uint32_t net_stall = 0;
};

class Nic {
 public:
  virtual ~Nic() = default;
  virtual void clock() = 0;
  virtual void reset(bool active) = 0;
  virtual void settings(const std::uint32_t* words) = 0;
  virtual std::vector<std::uint32_t> status() = 0;
  virtual std::uint64_t stat(std::uint32_t index) = 0;

  std::deque<Vector> to_send;
  std::deque<Vector> received;
  std::deque<Frame> from_net;
  std::deque<Frame> to_net;
  PortGaps gaps;
  std::uint64_t now = 0;
  std::uint64_t broken_laws =
      0;                         // beats that changed or vanished while they waited, gaps in frames
  std::uint64_t sent_beats = 0;  // to the MAC
  std::uint64_t busy_clocks = 0;  // clocks in which the MAC was offered a beat
};

#ifdef TRANSPORT_TOP
template <typename Top>
class TopNic : public Nic {
 public:
  TopNic(std::size_t vector_bytes, std::uint32_t seed)
      : random_(seed), vector_bytes_(vector_bytes), top_(std::make_unique<Top>()) {
    std::memset(&top_->settings, 0, sizeof top_->settings);
    top_->stat_index = 0;
    top_->rst = 1;
    for (int i = 0; i < 4; ++i) clock();
    top_->rst = 0;
  }

  void reset(bool active) override {
    top_->rst = active;
    if (!active) return;
    // What was under way is gone with the state.
    offered_beat_ = 0;
    offering_ = false;
    net_beat_ = 0;
    net_offering_ = false;
    frame_ = {};
    vector_ = {};
    waiting_host_ = waiting_net_ = false;
  }

  void settings(const std::uint32_t* words) override {
    std::memcpy(&top_->settings, words, sizeof top_->settings);
  }

  std::vector<std::uint32_t> status() override {
    std::vector<std::uint32_t> words(sizeof top_->status / 4);
    std::memcpy(words.data(), &top_->status, sizeof top_->status);
    return words;
  }

  std::uint64_t stat(std::uint32_t index) override {
    top_->stat_index = index;
    for (int i = 0; i < 3; ++i) clock();
    return top_->stat_value;
  }

  void clock() override {
    offer_vector();
    offer_frame();
    top_->m_axis_rx_tready = !gap(gaps.host_stall);
    top_->m_axis_net_tready = !gap(gaps.net_stall);
    top_->clk = 0;
    top_->eval();
    if (!top_->rst) {
      after_offers();
      take_vector();
      take_frame();
    }
    top_->clk = 1;
    top_->eval();
    ++now;
  }

 private:
  bool gap(std::uint32_t of256) { return of256 != 0 && (random_() & 255U) < of256; }

  void offer_vector() {
    if (!offering_) offering_ = !to_send.empty() && !gap(gaps.host_idle);
    top_->s_axis_tx_tvalid = offering_;
    if (!offering_) return;
    const Vector& vector = to_send.front();
    std::memcpy(&top_->s_axis_tx_tdata, &vector.data[offered_beat_ * kBeatBytes], kBeatBytes);
    top_->s_axis_tx_tlast = (offered_beat_ + 1) * kBeatBytes == vector.data.size();
    top_->s_axis_tx_tuser = vector.meta;
  }

  void offer_frame() {
    if (!net_offering_) net_offering_ = !from_net.empty() && !gap(gaps.net_idle);
    top_->s_axis_net_tvalid = net_offering_;
    if (!net_offering_) return;
    const Frame& frame = from_net.front();
    std::array<std::uint8_t, kBeatBytes> beat;
    for (auto& byte : beat)
      byte = static_cast<std::uint8_t>(random_());  // what is not kept is noise
    const std::size_t at = net_beat_ * kBeatBytes;
    const std::size_t count = std::min(kBeatBytes, frame.bytes.size() - at);
    std::memcpy(beat.data(), &frame.bytes[at], count);
    std::memcpy(&top_->s_axis_net_tdata, beat.data(), kBeatBytes);
    top_->s_axis_net_tkeep = count == 64 ? ~0ULL : (1ULL << count) - 1;
    top_->s_axis_net_tlast = at + count == frame.bytes.size();
    top_->s_axis_net_tuser = top_->s_axis_net_tlast ? frame.damaged : (random_() & 1U);
  }

  void after_offers() {
    if (offering_ && top_->s_axis_tx_tready) {
      offering_ = false;
      ++offered_beat_;
      if (offered_beat_ * kBeatBytes == to_send.front().data.size()) {
        to_send.pop_front();
        offered_beat_ = 0;
      }
    }
    if (!top_->s_axis_net_tready) ++broken_laws;
    if (net_offering_) {
      net_offering_ = false;
      ++net_beat_;
      if (net_beat_ * kBeatBytes >= from_net.front().bytes.size()) {
        from_net.pop_front();
        net_beat_ = 0;
      }
    }
  }

  void take_vector() {
    if (waiting_host_ && !top_->m_axis_rx_tvalid) ++broken_laws;
    if (!top_->m_axis_rx_tvalid) return;
    std::array<std::uint8_t, kBeatBytes> beat;
    std::memcpy(beat.data(), &top_->m_axis_rx_tdata, kBeatBytes);
    if (waiting_host_ && (beat != held_host_ || top_->m_axis_rx_tuser != held_meta_)) ++broken_laws;
    held_host_ = beat;
    held_meta_ = top_->m_axis_rx_tuser;
    waiting_host_ = !top_->m_axis_rx_tready;
    if (waiting_host_) return;
    if (vector_.data.empty()) {
      vector_.clock = now;
      vector_.meta = top_->m_axis_rx_tuser;
    }
    if (vector_.meta != top_->m_axis_rx_tuser) ++broken_laws;
    vector_.data.insert(vector_.data.end(), beat.begin(), beat.end());
    if (top_->m_axis_rx_tlast != (vector_.data.size() == vector_bytes_)) ++broken_laws;
    if (!top_->m_axis_rx_tlast) return;
    received.push_back(std::move(vector_));
    vector_ = {};
  }

  void take_frame() {
    if (waiting_net_ && !top_->m_axis_net_tvalid) ++broken_laws;
    if (!top_->m_axis_net_tvalid) {
      if (!frame_.bytes.empty()) ++broken_laws;  // a gap inside a frame
      return;
    }
    ++busy_clocks;
    std::array<std::uint8_t, kBeatBytes> beat;
    std::memcpy(beat.data(), &top_->m_axis_net_tdata, kBeatBytes);
    const std::uint64_t keep = top_->m_axis_net_tkeep;
    if (waiting_net_ && (beat != held_net_ || keep != held_keep_)) ++broken_laws;
    held_net_ = beat;
    held_keep_ = keep;
    waiting_net_ = !top_->m_axis_net_tready;
    if (waiting_net_) return;
    ++sent_beats;
    if (frame_.bytes.empty()) frame_.clock = now;
    const auto count = static_cast<std::size_t>(__builtin_popcountll(keep));
    const bool contiguous = count == 64 || keep == (1ULL << count) - 1;
    if (!contiguous || count == 0 || (count != 64 && !top_->m_axis_net_tlast)) ++broken_laws;
    frame_.bytes.insert(frame_.bytes.end(), beat.begin(), beat.begin() + count);
    if (!top_->m_axis_net_tlast) return;
    to_net.push_back(std::move(frame_));
    frame_ = {};
  }

  std::mt19937 random_;
  std::size_t vector_bytes_;
  std::unique_ptr<Top> top_;
  bool offering_ = false;
  std::size_t offered_beat_ = 0;
  bool net_offering_ = false;
  std::size_t net_beat_ = 0;
  bool waiting_host_ = false;
  bool waiting_net_ = false;
  std::array<std::uint8_t, kBeatBytes> held_host_{};
  std::uint64_t held_meta_ = 0;
  std::array<std::uint8_t, kBeatBytes> held_net_{};
  std::uint64_t held_keep_ = 0;
  Vector vector_;
  Frame frame_;
};
#endif
