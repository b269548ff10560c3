// The transport's halves as kernels: event in, answer out (docs/explanation/protocol.md,
// "Sender", "Consumer").
#pragma once

#include "stream_types.hpp"

namespace catchment::hls_model {

constexpr int kWindow = 64;  // places of the consumer's ring, a power of two

// ---- sender
// ------------------------------------------------------------------------------------------------
struct SenderEvent {
  enum Kind : unsigned {
    kBegin,  // a stream begins at `first`, with `second` frames of window and `third` slots in the
             // switch
    kData,   // the host has one more vector
    kHeard,  // ack `first`, credit `second`
    kSlot,   // the link takes a frame
    kTimeout,  // no progress for an RTO
  };
  ap_uint<3> kind;
  Seq first;
  Seq second;
  Seq third;
};

struct SenderAnswer {
  ap_uint<1> sends;       // on kSlot: frame `seq` goes out,
  ap_uint<1> again;       // for the second time
  ap_uint<1> impossible;  // on kHeard: acknowledges what was never sent, or grants beyond the
                          // slots; has no effect
  Seq seq;
  Seq acked;   // everyone has all below
  Seq next;    // first not sent
  Seq credit;  // first that may not be sent
};

// Never beyond the credit or the window; ack and credit move forward only; after a timeout `acked`
// goes out again, and more of what was in flight while the acks show that it was lost.
void sender(hls::stream<SenderEvent>& events, hls::stream<SenderAnswer>& answers);

// ---- consumer
// ----------------------------------------------------------------------------------------------
struct ConsumerEvent {
  enum Kind : unsigned {
    kBegin,    // a stream begins at `first`, with `second` frames of window, 1..kWindow
    kArrived,  // a whole frame with sequence number `first`
    kPop,      // the host takes the oldest
  };
  ap_uint<2> kind;
  Seq first;
  Seq second;
};

struct ConsumerAnswer {
  enum Verdict : unsigned { kNone, kTaken, kRepeated, kOutside, kHanded, kNothing };
  ap_uint<3> verdict;
  Seq ack;       // first not received
  Seq consumed;  // first not handed over
  Seq credit;    // consumed + window
};

// Takes each sequence number inside the window once, in any order, and hands them over in order.
void consumer(hls::stream<ConsumerEvent>& events, hls::stream<ConsumerAnswer>& answers);

}  // namespace catchment::hls_model
