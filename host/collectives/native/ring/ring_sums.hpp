// What a switch does for an all-reduce, done by the ranks in a ring.  Pure: no clock, no socket.
//
// Vector `seq` begins at rank seq modulo N.  Each rank adds its own vector and passes the sum on;
// the last one has all, and sends it on to the others.  So each link carries 2 (N-1)/N of every
// array, as in every ring all-reduce, and each vector is a chunk.  A chain that is begun again has
// the same sums, since a partial sum says by its place in the ring what is in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "catchment/common/serial.hpp"
#include "ring_message.hpp"

namespace catchment::host::ring {

struct RingShape {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t slots = 0;  // vectors that may be under way
  std::uint32_t lanes = 0;
};

class RingSums {
 public:
  RingSums(const RingShape& shape, Sink& sink);

  // This rank's vector (PA), perhaps again.
  void on_own(const wire::Header& header, std::span<const std::uint8_t> payload);
  // A partial or full sum, or the question for one, from the rank before.
  void on_message(const Message& message);

 private:
  struct Slot {
    bool claimed = false;
    Seq seq = 0;
    bool own = false;   // this rank's vector is here
    bool held = false;  // the partial sum came before it
    bool done = false;  // the sum over all is here
    wire::Header own_header;
    wire::Header sum_header;
  };

  // The slot of `seq`; nullptr when a later vector has it.
  Slot* claim(Seq seq);
  std::span<std::uint8_t> own_of(Seq seq);
  std::span<std::uint8_t> sum_of(Seq seq);
  bool begins(Seq seq) const { return seq % shape_.ranks == shape_.rank; }
  // Whether this rank's vector is the last that a partial sum lacks.
  bool ends(Seq seq) const {
    return (seq % shape_.ranks + shape_.ranks - 1) % shape_.ranks == shape_.rank;
  }
  void begin(const Slot& slot);
  // Adds this rank's vector to the partial sum that is held.
  void add(Slot& slot);
  void send_sum(const Slot& slot, std::uint32_t hops);
  void on_ask(const Message& message);

  RingShape shape_;
  Sink& sink_;
  std::uint32_t mask_;
  std::vector<Slot> slots_;
  std::vector<std::uint8_t> own_;
  std::vector<std::uint8_t> sums_;
};

}  // namespace catchment::host::ring
