// What ranks in a ring send to the next one (docs/explanation/rails.md, "Rings").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire.hpp"

namespace catchment::host::ring {

enum class Kind : std::uint8_t {
  kPartial = 1,  // the sum over the first ranks of a vector's chain
  kSum = 2,      // over all
  kWindow = 3,   // a rank's heartbeat
  kAsk = 4,      // a rank lacks this sum
};

// The word before a header: kind, origin and hops, a byte each, and one that is zero.
inline constexpr std::size_t kWordBytes = 4;
inline constexpr std::size_t kLeadBytes = kWordBytes + wire::kHeaderBytes;

struct Message {
  Kind kind = Kind::kPartial;
  std::uint8_t origin = 0;  // kWindow: whose it is
  std::uint8_t hops = 0;    // ranks that have yet to see it
  wire::Header header;
  std::span<const std::uint8_t> payload;  // lanes in network byte order; of partial and full sums

  bool has_payload() const { return kind == Kind::kPartial || kind == Kind::kSum; }
};

// Where the parts of a ring's port send what they make.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  // To the next rank.  The payload is copied.
  virtual void pass_on(const Message& message) = 0;
  // To this rank's engine, as from a switch.  The payload is copied.
  virtual void deliver(const wire::Header& header, std::span<const std::uint8_t> payload) = 0;
};

}  // namespace catchment::host::ring
