// The format of the shared memory: docs/explanation/shared-memory.md, as structs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace catchment::shm {

inline constexpr std::uint64_t kMagic = 0x4d48'5348'4354'4143;  // "CATCHSHM" in memory
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kLine = 64;
/// What one side writes and the other polls is this far apart: processors fetch lines in pairs.
inline constexpr std::size_t kApart = 2 * kLine;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

/// Sizes of a port. Both rings have the same.
struct Geometry {
  std::uint32_t cells = 256;  // frames in a ring, a power of two
  std::uint32_t cell_bytes =
      9792;  // the longest frame; 64 times an odd number spreads over a cache

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

inline constexpr std::uint32_t kMinCells = 2;
inline constexpr std::uint32_t kMaxCells = 1U << 16;
inline constexpr std::uint32_t kMinCellBytes = kLine;
inline constexpr std::uint32_t kMaxCellBytes = 1U << 16;

/// What is wrong with a geometry; empty when nothing is.
std::string refusal(const Geometry& geometry);

/// Bits of `waiting`: what a side that sleeps is to be woken for.
enum Waiting : std::uint32_t { kForFrames = 1, kForRoom = 2 };

/// What a peer that runs the program itself passes to the switch through its ring: in the length's
/// upper bits, which are zero where the switch is to run a frame.
struct Mark {
  enum class Kind : std::uint32_t {
    none,
    leaves,      // a frame that leaves by `port`
    digest,      // for the control plane
    line,        // of the program's log
    step_limit,  // a frame from `port` took too many steps; where
  };
  Kind kind = Kind::none;
  std::uint32_t port = 0;

  static constexpr std::uint32_t kLengthBits = 17;
  static constexpr std::uint32_t kPortBits = 9;
  static constexpr std::uint32_t kLengthMask = (1U << kLengthBits) - 1;

  static constexpr Mark of(std::uint32_t length) {
    return {static_cast<Kind>(length >> (kLengthBits + kPortBits)),
            length >> kLengthBits & ((1U << kPortBits) - 1)};
  }
  [[nodiscard]] constexpr std::uint32_t bits() const {
    return static_cast<std::uint32_t>(kind) << (kLengthBits + kPortBits) | port << kLengthBits;
  }
};
static_assert(kMaxCellBytes < 1U << Mark::kLengthBits);

/// Frames written, and frames read, since the epoch began; both wrap. `read` is at most `cells`
/// behind.
struct RingIndices {
  alignas(kApart) std::uint64_t written;  // by the producer
  alignas(kApart) std::uint64_t read;     // by the consumer
};

/// The first page. What stands before the indices is set by the switch and never changes.
struct alignas(kPage) Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t cells;
  std::uint32_t cell_bytes;
  std::uint64_t epoch;  // of this attachment, greater than any before it on this port
  std::uint32_t switch_pid;
  std::uint32_t peer_pid;
  RingIndices to_switch;
  RingIndices from_switch;
  alignas(kApart) std::uint32_t switch_waiting;
  alignas(kApart) std::uint32_t peer_waiting;
};
static_assert(offsetof(Header, to_switch) == 128);
static_assert(offsetof(Header, from_switch) == 384);
static_assert(offsetof(Header, switch_waiting) == 640);
static_assert(offsetof(Header, peer_waiting) == 768);
static_assert(sizeof(Header) == kPage);

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// The offsets of the memory's parts, in bytes from its beginning.
struct Offsets {
  explicit constexpr Offsets(const Geometry& geometry) {
    const std::size_t lengths = round_up(geometry.cells * sizeof(std::uint32_t), kApart);
    const std::size_t cells =
        round_up(static_cast<std::size_t>(geometry.cells) * geometry.cell_bytes, kPage);
    to_switch_lengths = sizeof(Header);
    from_switch_lengths = to_switch_lengths + lengths;
    to_switch_cells = round_up(from_switch_lengths + lengths, kPage);
    from_switch_cells = to_switch_cells + cells;
    total = from_switch_cells + cells;
  }
  std::size_t to_switch_lengths = 0;
  std::size_t from_switch_lengths = 0;
  std::size_t to_switch_cells = 0;
  std::size_t from_switch_cells = 0;
  std::size_t total = 0;
};

}  // namespace catchment::shm
