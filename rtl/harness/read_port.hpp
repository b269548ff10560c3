// Memory behind an AXI4 port that only reads: bytes of the caller, a latency, and clocks in which
// nothing moves. The caller moves the signals, so that a design with many ports needs no names for
// them.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <random>

namespace catchment::rtl {

class ReadPort {
 public:
  static constexpr std::uint64_t kBeat = 64;

  explicit ReadPort(std::uint32_t seed) : random_(seed) {}

  void reseed(std::uint32_t seed) { random_.seed(seed); }

  void attach(const std::uint8_t* bytes, std::uint64_t base, std::uint64_t size) {
    bytes_ = bytes;
    base_ = base;
    size_ = size;
  }

  // Clocks from an address to its first beat; of 256 clocks, in how many no address is taken and no
  // beat comes.
  void pace(std::uint32_t latency, std::uint32_t stall) {
    latency_ = latency;
    stall_ = stall;
  }

  // What the port is to see in this clock.
  bool ready = false;
  bool valid = false;
  bool last = false;
  bool error = false;
  std::uint8_t data[kBeat] = {};

  std::uint64_t broken_laws = 0;

  void drive() {
    ++clock_;
    ready = !gap() && bursts_.size() < 64;
    if (!valid && !bursts_.empty() && bursts_.front().due <= clock_ && !gap()) offer();
  }

  void sample(bool arvalid, std::uint64_t address, std::uint32_t length, bool rready) {
    if (arvalid && ready) {
      const std::uint64_t bytes = (length + 1) * kBeat;
      if (address % kBeat != 0 || address % 4096 + bytes > 4096 || address < base_ ||
          address + bytes > base_ + size_)
        ++broken_laws;
      bursts_.push_back({address, length + 1, clock_ + latency_});
    }
    if (valid && rready) {
      valid = false;
      Burst& burst = bursts_.front();
      burst.address += kBeat;
      if (--burst.beats == 0) bursts_.pop_front();
    }
  }

 private:
  struct Burst {
    std::uint64_t address;
    std::uint32_t beats;
    std::uint64_t due;
  };

  bool gap() { return stall_ != 0 && (random_() & 255U) < stall_; }

  void offer() {
    const Burst& burst = bursts_.front();
    error = burst.address < base_ || burst.address + kBeat > base_ + size_;
    if (error)
      std::memset(data, 0xEE, kBeat);
    else
      std::memcpy(data, bytes_ + (burst.address - base_), kBeat);
    last = burst.beats == 1;
    valid = true;
  }

  const std::uint8_t* bytes_ = nullptr;
  std::uint64_t base_ = 0;
  std::uint64_t size_ = 0;
  std::mt19937 random_;
  std::uint64_t clock_ = 0;
  std::uint32_t latency_ = 20;
  std::uint32_t stall_ = 0;
  std::deque<Burst> bursts_;
};

}  // namespace catchment::rtl
