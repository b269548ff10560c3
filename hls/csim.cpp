// C simulation: what Vitis runs with csim_design, and what `make hls-test` runs with g++.  Returns
// the number of failures.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "convert.hpp"
#include "glm_engine.hpp"
#include "ring_pass.hpp"
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
  hls::stream<FormatBeat> in;
  hls::stream<CutBeat> lanes;
  hls::stream<PlainBeat> out;
  FormatBeat beat;
  beat.data = 0;
  beat.keep = 0;
  beat.last = 1;
  beat.user = pack({static_cast<unsigned>(DataType::kFP32), 2, 3});
  const float values[] = {1.0F, -3.999F, 0x1p-26F, 4.0F, -4.5F, INFINITY};
  for (int i = 0; i < 6; ++i) {
    beat.data.range(32 * i + 31, 32 * i) = bits_of(values[i]);
    beat.keep.range(4 * i + 3, 4 * i) = 0xf;
  }
  in.write(beat);
  float_to_int(in, lanes);
  const CutBeat converted = lanes.read();
  check(lanes.empty() && converted.last == 1 && converted.keep == beat.keep,
        "one beat in, one beat out");
  check(ap_int<32>(converted.data.range(31, 0)) == (1 << 25), "1.0 is 2^(30-h-E)");
  check(converted.user.to_uint64() == 0x30'0000'0020ULL,
        "4.5 and infinity are cut, one is not finite; 4.0 is the end itself");
  beat.data = converted.data;
  in.write(beat);
  int_to_float(in, out);
  const PlainBeat back = out.read();
  check(back.data.range(31, 0) == bits_of(1.0F), "1.0 comes back");
  check(back.data.range(159, 128) == bits_of(-4.0F), "what was cut comes back as the end");
}

// Four workers: 2^(15-2) is 1.0 at E = 0, and the largest number is one less.
void floats_go_in_pairs() {
  hls::stream<FormatBeat> in;
  hls::stream<CutBeat> lanes;
  hls::stream<PlainBeat> out;
  FormatBeat beat;
  beat.data = 0;
  beat.keep = 0;
  beat.user = pack({static_cast<unsigned>(DataType::kFP32), 0, 2, 1, 1});
  const float values[] = {1.0F, -0.5F, 0x1p-13F, 0x1p-14F, 1.5F};
  for (int i = 0; i < 16; ++i) {
    beat.data.range(32 * i + 31, 32 * i) = bits_of(i < 5 ? values[i] : 0.25F);
    beat.keep.range(4 * i + 3, 4 * i) = 0xf;
  }
  beat.last = 0;
  in.write(beat);
  beat.keep = 0xf;
  beat.last = 1;
  in.write(beat);
  float_to_int(in, lanes);
  const CutBeat converted = lanes.read();
  check(lanes.empty() && converted.last == 1 && converted.keep == 0xfffffffffULL,
        "two beats in, one beat out, the last lane half full");
  check(converted.data.range(31, 0) == 0x1fff'f000U, "the first of two lies above");
  check(converted.data.range(95, 64) == 0x1fff'0800U && converted.user.to_uint64() >> 32 == 1 << 4,
        "1.0 is one step less and not cut, 1.5 is cut");
  beat.data = converted.data;
  beat.keep = 0x3'ffff'ffffULL;
  in.write(beat);
  int_to_float(in, out);
  check(out.read().data.range(63, 32) == bits_of(-0.5F), "-0.5 comes back");
  const PlainBeat end = out.read();
  check(out.empty() && end.keep == 0xf && end.data.range(31, 0) == bits_of(0x1.fffp-1F),
        "and so does the last, alone in its beat");
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

// One feature of 2 and one of 1 in the first sample, of two bits each; the other samples are zeros.
void engine_learns_a_step() {
  namespace glm = catchment::glm;
  std::vector<Weight> weights(glm::kEngineWeights);
  std::vector<Gradient> gradients(glm::kEngineWeights, Gradient(77));
  for (int i = 0; i < glm::kChunk; ++i) weights[i] = i + 1;
  hls::stream<Word> planes;
  hls::stream<Word> replay;
  planes.write(Word(1));  // the high bits: feature 0
  planes.write(Word(2));  // the low bits: feature 1
  Accumulator sums[glm::kBanks];
  glm_forward(planes, replay, weights.data(), 2, 1, sums);
  check(sums[0] == 2 * 1 + 1 * 2, "the sample times the weights");
  check(sums[glm::kBanks - 1] == 0, "a sample of zeros");

  const Activation activation = glm_activation(sums[0], 1);
  check(activation == 2 && glm_activation(5, 1) == 2 && glm_activation(7, 1) == 4,
        "halves go to the even");
  const ap_uint<glm::kMultiplierBits> half = 1 << (glm::kMultiplierBits - 1);
  Scale scales[glm::kBanks] = {};
  scales[0] = glm_scale(activation, Activation(-2), glm::Loss::kSquares, half);
  check(scales[0] == 2, "half of the difference to the label");
  check(glm_scale(Activation(0), Activation(1), glm::Loss::kHinge, half) == -glm::kSigmoidOne / 2,
        "the hinge pulls towards the label");

  glm_backward(replay, scales, gradients.data(), weights.data(), 2, 1, true, true, 1);
  check(replay.empty(), "each plane is read twice and no more");
  check(gradients[0] == 4 && gradients[1] == 2 && gradients[2] == 0, "a mini-batch begins at 0");
  check(weights[0] == 1 - 2 && weights[1] == 2 - 1 && weights[2] == 3, "half of the gradient");
}

// Two devices, three entries: a segment of two and one of one.
void a_ring_sums() {
  Entry memories[2][3] = {{1, 2, 3}, {10, 20, Entry(0xffffffffU)}};
  hls::stream<Entry> forth;
  hls::stream<Entry> back;
  for (int pass = 0; pass <= 2; ++pass) {
    hls::stream<Entry> sent;  // what device 1 sends in a pass is for device 0's next one
    ring_pass({0, 1, 3, 2, 0}, pass, memories[0], back, forth);
    if (pass == 0) {
      ring_pass({1, 1, 3, 2, 0}, pass, memories[1], back, sent);
    } else {
      hls::stream<Entry> older;
      for (int left = pass == 1 ? 2 : 1; left != 0; --left) older.write(forth.read());
      ring_pass({1, 1, 3, 2, 0}, pass, memories[1], older, sent);
      check(older.empty(), "a pass takes what the pass before sent");
    }
    while (!sent.empty()) back.write(sent.read());
  }
  for (const auto& memory : memories)
    check(memory[0] == 11 && memory[1] == 22 && memory[2] == 2,
          "each device has the sums, which wrap");
  check(forth.empty() && back.empty(), "nothing is left on the links");
}

}  // namespace

int main() {
  floats_go_there_and_back();
  floats_go_in_pairs();
  sender_keeps_the_credit();
  consumer_hands_over_once();
  engine_learns_a_step();
  a_ring_sums();
  std::printf("csim: %d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
