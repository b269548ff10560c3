// C simulation: what Vitis runs with csim_design, and what `make hls-test` runs with g++.  Returns
// the number of failures.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "convert.hpp"
#include "transport.hpp"

namespace {

using namespace catchment::hls_model;
using catchment::wire_hls::DataType;

int failures = 0;

void check(bool good, const char* what) {
  if (good) return;
  ++failures;
  std::printf("csim: %s\n", what);
}

ap_uint<32> bits_of(float value) {
  unsigned word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

void floats_go_there_and_back() {
  hls::stream<Beat> in;
  hls::stream<Beat> lanes;
  hls::stream<Beat> out;
  const Format format{static_cast<unsigned>(DataType::kFP32), 2, 3};
  Beat beat{0, 0, 1, 0};
  const float values[] = {1.0F, -3.999F, 0x1p-26F, 4.0F, -4.5F, INFINITY};
  for (int i = 0; i < 6; ++i) {
    beat.data.range(32 * i + 31, 32 * i) = bits_of(values[i]);
    beat.keep.range(4 * i + 3, 4 * i) = 0xf;
  }
  in.write(beat);
  float_to_int(in, lanes, format);
  const Beat converted = lanes.read();
  check(lanes.empty() && converted.last == 1 && converted.keep == beat.keep,
        "one beat in, one beat out");
  check(ap_int<32>(converted.data.range(31, 0)) == (1 << 25), "1.0 is 2^(30-h-E)");
  check(converted.user == 0x300020,
        "4.5 and infinity are cut, one is not finite; 4.0 is the end itself");
  lanes.write(converted);
  int_to_float(lanes, out, format);
  const Beat back = out.read();
  check(back.data.range(31, 0) == bits_of(1.0F), "1.0 comes back");
  check(back.data.range(159, 128) == bits_of(-4.0F), "what was cut comes back as the end");
}

SenderAnswer tell_sender(SenderEvent event) {
  hls::stream<SenderEvent> events;
  hls::stream<SenderAnswer> answers;
  events.write(event);
  sender(events, answers);
  return answers.read();
}

void sender_keeps_the_credit() {
  const Seq base = 0xffff'fffeU;  // the numbers wrap on the way
  tell_sender({SenderEvent::kBegin, base, 4, 8});
  for (int i = 0; i < 8; ++i) tell_sender({SenderEvent::kData, 0, 0, 0});
  for (unsigned i = 0; i < 4; ++i) {
    const SenderAnswer answer = tell_sender({SenderEvent::kSlot, 0, 0, 0});
    check(answer.sends == 1 && answer.seq == Seq(base + i), "frames go out in order");
  }
  check(tell_sender({SenderEvent::kSlot, 0, 0, 0}).sends == 0, "no frame beyond the window");
  check(tell_sender({SenderEvent::kHeard, 0x10, 0x14, 0}).impossible == 1,
        "an ack of what was never sent");
  tell_sender({SenderEvent::kTimeout, 0, 0, 0});
  const SenderAnswer again = tell_sender({SenderEvent::kSlot, 0, 0, 0});
  check(again.again == 1 && again.seq == base, "a timeout begins at ma");
  tell_sender({SenderEvent::kHeard, base + 2, base + 6, 0});
  check(tell_sender({SenderEvent::kHeard, base, base + 4, 0}).acked == Seq(base + 2),
        "a stale heartbeat moves nothing");
}

ConsumerAnswer tell_consumer(ConsumerEvent event) {
  hls::stream<ConsumerEvent> events;
  hls::stream<ConsumerAnswer> answers;
  events.write(event);
  consumer(events, answers);
  return answers.read();
}

void consumer_hands_over_once() {
  const Seq base = 0xffff'ffffU;
  tell_consumer({ConsumerEvent::kBegin, base, 4});
  check(tell_consumer({ConsumerEvent::kArrived, base + 1, 0}).ack == base,
        "a frame before its turn is no progress");
  check(tell_consumer({ConsumerEvent::kPop, 0, 0}).verdict == ConsumerAnswer::kNothing,
        "and is not handed over");
  check(tell_consumer({ConsumerEvent::kArrived, base + 4, 0}).verdict == ConsumerAnswer::kOutside,
        "beyond the credit");
  check(tell_consumer({ConsumerEvent::kArrived, base, 0}).ack == Seq(base + 2), "the gap closes");
  check(tell_consumer({ConsumerEvent::kPop, 0, 0}).credit == Seq(base + 5),
        "taking one gives credit");
  check(tell_consumer({ConsumerEvent::kArrived, base, 0}).verdict == ConsumerAnswer::kRepeated,
        "each is taken once");
}

}  // namespace

int main() {
  floats_go_there_and_back();
  sender_keeps_the_credit();
  consumer_hands_over_once();
  std::printf("csim: %d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
