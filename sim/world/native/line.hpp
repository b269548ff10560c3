// One direction of a link: a queue, serialization, propagation, faults. A line knows when frames
// arrive and how many copies of them, not what is in them; frame_line.hpp carries contents.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "catchment/common/cache_line.hpp"
#include "catchment/common/faults.hpp"
#include "sim/world/native/ethernet.hpp"
#include "sim/world/native/time.hpp"

namespace catchment::world {

struct LineTiming {
  Picos byte = 0;     // time of a byte; 0: serialization takes no time
  Picos latency = 0;  // of PHY, MAC and cable together, from first bit to first bit
};

struct LineFaults : FaultRates {
  Picos delay = 0;   // the most that a reordered copy is held back
  Picos jitter = 0;  // the most that any copy comes later
};

struct LineCounts {
  std::uint64_t frames = 0;        // that were sent, lost or not
  std::uint64_t bytes = 0;         // of them
  std::uint64_t most_waiting = 0;  // bytes in the queue
  std::uint64_t dropped = 0;       // were not sent: the queue was full
  std::uint64_t lost = 0;
  std::uint64_t damaged = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;  // copies
};

// A copy of a frame at the end of the line.
struct Copy {
  Picos first = 0;  // when the first bit of its preamble arrives
  Picos last = 0;   // and the last of its FCS
  bool damaged = false;
};

struct Transit {
  bool dropped = false;
  Picos start = 0;  // the first bit leaves
  bool lost = false;
  std::size_t copies = 0;
  std::array<Copy, 2> copy;
  bool replays = false;     // an earlier frame arrives as `replay`, too
  std::uint64_t which = 0;  // of the earlier ones, uniform over 64 bits
  Copy replay;
};

// All that a frame on a line without faults needs lies in one line of the cache.
class alignas(kCacheLine) Line {
 public:
  static constexpr std::size_t kUnlimited = ~std::size_t{0};

  Line(std::uint64_t seed, std::uint32_t number, LineTiming timing)
      : number_(number), timing_(timing), stream_(seed, number) {}

  [[nodiscard]] const LineFaults& faults() const { return faults_; }
  void set_faults(const LineFaults& faults) {
    faults_ = faults;
    look_whether_clear();
  }
  /// Bytes that may wait; a frame that does not fit is dropped.
  void limit_queue(std::size_t bytes) { queue_bytes_ = bytes; }

  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] const LineTiming& timing() const { return timing_; }
  [[nodiscard]] const LineCounts& counts() const { return counts_; }
  /// The time when the last frame that was sent, and the gap behind it, are through.
  [[nodiscard]] Picos free_at() const { return free_at_; }
  /// Bytes that wait at `now`.
  [[nodiscard]] std::size_t backlog(Picos now) const {
    if (free_at_ <= now || timing_.byte == 0) return 0;
    return static_cast<std::size_t>((free_at_ - now) / timing_.byte);
  }

  /// Whether more than so many bytes wait at `now`.
  [[nodiscard]] bool holds_more(std::size_t bytes, Picos now) const {
    return free_at_ - now >= (static_cast<Picos>(bytes) + 1) * timing_.byte && timing_.byte != 0;
  }

  /// Whether frames arrive, once each, when serialization and propagation are over.
  [[nodiscard]] bool clear() const { return clear_; }

  /// What a clear line did since its counts were `before` happens `times` more, and takes `by`.
  void repeat(const LineCounts& before, std::uint64_t times, Picos by) {
    const std::uint64_t frames = times * (counts_.frames - before.frames);
    counts_.frames += frames;
    counts_.bytes += times * (counts_.bytes - before.bytes);
    counts_.dropped += times * (counts_.dropped - before.dropped);
    free_at_ += by;
  }

  /// Loses `count` frames after `skip` others; of this kind, if one is given.
  void lose(std::optional<std::uint8_t> kind, std::uint64_t skip, std::uint64_t count) {
    stream_.targeted.add(kind, skip, count);
    look_whether_clear();
  }

  /// Sends, as send() does, a frame on a line that is clear: when its last bit arrives, or kForever
  /// if it is dropped.
  Picos send_clear(std::size_t bytes, Picos ready) {
    const Picos start = put(bytes, wire_bytes(bytes), ready, ready);
    if (start == kForever) return kForever;
    return start + timing_.latency + length_of(wire_bytes(bytes), kGap);
  }

  /// Puts an Ethernet frame of so many bytes behind those before it, no earlier than `ready`; its
  /// last byte is there by `complete`.
  Transit send(std::size_t bytes, std::uint8_t kind, Picos ready, Picos complete) {
    return send_on_wire(bytes, wire_bytes(bytes), kGap, kind, ready, complete);
  }

  /// Sends, as send() does, bytes without Ethernet around them.
  Transit send_bare(std::size_t bytes, Picos ready) {
    return send_on_wire(bytes, bytes, 0, 0, ready, ready);
  }

 private:
  Transit send_on_wire(std::size_t bytes, std::size_t on_wire, std::size_t gap, std::uint8_t kind,
                       Picos ready, Picos complete) {
    Transit out;
    const Picos length = length_of(on_wire, gap);
    // A line that is faster than what feeds it still ends with the last byte.
    const Picos start = put(bytes, on_wire, ready, complete - length);
    out.dropped = start == kForever;
    if (out.dropped) return out;
    out.start = start;
    const bool was_clear = clear_;
    stream_.pass(counts_.frames - 1 - stream_.frames());
    const Fate fate = stream_.next(faults_, kind, faults_.jitter > 0);
    if (!was_clear) look_whether_clear();
    out.lost = fate.lost;
    out.copies = fate.copies;
    counts_.lost += fate.lost ? 1 : 0;
    counts_.damaged += fate.damaged ? 1 : 0;
    counts_.duplicated += fate.copies == 2 ? 1 : 0;
    const Picos first = out.start + timing_.latency;
    for (std::size_t i = 0; i < fate.copies; ++i) {
      const CopyFate& copy = fate.copy[i];
      Picos late = within(copy.jitter, faults_.jitter);
      if (copy.reordered) {
        late += within(copy.hold, faults_.delay);
        ++counts_.reordered;
      }
      out.copy[i] = {first + late, first + late + length, fate.damaged};
    }
    out.replays = fate.replays;
    out.which = fate.which;
    out.replay = {first, first + length, false};
    return out;
  }

  // Puts a frame behind those before it, no earlier than `ready`, nor than `least` if it is not
  // dropped. Gives when its first bit leaves, or kForever.
  Picos put(std::size_t bytes, std::size_t on_wire, Picos ready, Picos least) {
    if (queue_bytes_ != kUnlimited) {
      const std::size_t waiting = backlog(ready) + bytes;
      if (waiting > queue_bytes_) {
        ++counts_.dropped;
        return kForever;
      }
      counts_.most_waiting = std::max<std::uint64_t>(counts_.most_waiting, waiting);
    }
    const Picos start = std::max({ready, free_at_, least});
    free_at_ = start + static_cast<Picos>(on_wire) * timing_.byte;
    ++counts_.frames;
    counts_.bytes += bytes;
    return start;
  }

  // From a frame's first bit to its last.
  [[nodiscard]] Picos length_of(std::size_t on_wire, std::size_t gap) const {
    return static_cast<Picos>(on_wire - gap) * timing_.byte;
  }

  void look_whether_clear() { clear_ = stream_.clear(faults_) && faults_.jitter == 0; }

  static Picos within(std::uint64_t draw, Picos most) {
    return static_cast<Picos>(scaled(draw, static_cast<std::uint64_t>(most)));
  }

  std::uint32_t number_;
  bool clear_ = true;
  LineTiming timing_;
  std::size_t queue_bytes_ = kUnlimited;
  Picos free_at_ = 0;
  LineCounts counts_;
  LineFaults faults_;
  FaultStream stream_;  // of the frames until the last one that was sent while it was not clear
};

}  // namespace catchment::world
