#include "transport.hpp"

namespace catchment::hls_model {

void consumer(hls::stream<ConsumerEvent>& events, hls::stream<ConsumerAnswer>& answers) {
#pragma HLS INTERFACE mode = axis port = events
#pragma HLS INTERFACE mode = axis port = answers
#pragma HLS INTERFACE mode = ap_ctrl_none port = return
#pragma HLS PIPELINE II = 1
  static Seq consumed = 0;
  static Seq window = 0;
  static Seq received = 0;           // frames in a row from `consumed` on
  static ap_uint<kWindow> held = 0;  // bit i: frame consumed + i is here

  const ConsumerEvent event = events.read();
  ConsumerAnswer answer{ConsumerAnswer::kNone, 0, 0, 0};
  if (event.kind == ConsumerEvent::kBegin) {
    consumed = event.first;
    window = event.second;
    held = 0;
  } else if (event.kind == ConsumerEvent::kArrived) {
    const Seq ahead = event.first - consumed;
    if (ahead < window) {
      const ap_uint<6> place = ahead;
      answer.verdict = held[place] == 1 ? ConsumerAnswer::kRepeated : ConsumerAnswer::kTaken;
      held[place] = 1;
    } else {
      answer.verdict = ahead[31] == 1 ? ConsumerAnswer::kRepeated : ConsumerAnswer::kOutside;
    }
  } else if (held[0] == 1) {
    answer.verdict = ConsumerAnswer::kHanded;
    consumed = consumed + 1;
    held = held >> 1;
  } else {
    answer.verdict = ConsumerAnswer::kNothing;
  }
  received = 0;
count_row:
  for (int i = 0; i < kWindow; ++i) {
#pragma HLS UNROLL
    if (received == i && held[i] == 1) received = i + 1;
  }
  answer.ack = consumed + received;
  answer.consumed = consumed;
  answer.credit = consumed + window;
  answers.write(answer);
}

}  // namespace catchment::hls_model
