#include "transport.hpp"

namespace catchment::hls_model {
namespace {

Seq earlier(Seq a, Seq b) { return newer(b, a) ? a : b; }

// What is sent again: after a timeout `acked` alone; while acks come that show loss, twice as many
// each time, up to what was in flight at the timeout.  The next one is chosen ahead, as a register
// in front of the link.
struct Repeats {
  Seq from = 0;  // [from, stop) now
  Seq stop = 0;
  Seq recover = 0;  // more of [.., recover) when acks come
  Seq burst = 0;    // 0: not recovering
  Seq head = 0;
  bool chosen = false;  // head is the next to go

  void choose() {
    if (chosen || burst == 0 || !newer(stop, from)) return;
    head = from;
    from = from + 1;
    chosen = true;
  }

  void begin(Seq acked) {
    from = stop = recover = acked;
    burst = 0;
    chosen = false;
  }

  void timeout(Seq acked, Seq next) {
    from = acked;
    stop = acked + 1;
    recover = next;
    burst = 1;
    chosen = false;
    choose();
  }

  void progress(Seq acked, Seq next, Seq window) {
    if (Seq(head - acked) >= Seq(next - acked)) chosen = false;
    if (newer(acked, from)) {
      from = acked;
    } else {
      choose();
    }
    if (burst != 0) {
      const bool late = newer(acked, stop);
      const bool done = !newer(recover, acked);
      const Seq twice = burst >= (window >> 1) ? window : Seq(burst << 1);
      const Seq reach = earlier(acked + twice, recover);
      burst = late || done ? Seq(0) : twice;
      if (newer(reach, stop)) stop = reach;
    }
    choose();
  }
};

}  // namespace

void sender(hls::stream<SenderEvent>& events, hls::stream<SenderAnswer>& answers) {
#pragma HLS INTERFACE mode = axis port = events
#pragma HLS INTERFACE mode = axis port = answers
#pragma HLS INTERFACE mode = ap_ctrl_none port = return
#pragma HLS PIPELINE II = 1
  static Seq acked = 0;
  static Seq next = 0;
  static Seq end = 0;
  static Seq credit = 0;
  static Seq window = 0;
  static Seq slots = 0;
  static Repeats repeats;

  const SenderEvent event = events.read();
  SenderAnswer answer{0, 0, 0, 0, 0, 0, 0};
  switch (event.kind) {
    case SenderEvent::kBegin:
      acked = next = end = event.first;
      window = event.second;
      slots = event.third;
      credit = event.first + event.second;
      repeats.begin(acked);
      break;
    case SenderEvent::kData:
      end = end + 1;
      break;
    case SenderEvent::kHeard:
      answer.impossible = newer(event.first, next) || Seq(event.second - event.first) > slots;
      if (answer.impossible == 0) {
        if (newer(event.second, credit)) credit = event.second;
        if (newer(event.first, acked)) {
          acked = event.first;
          repeats.progress(acked, next, window);
        }
      }
      break;
    case SenderEvent::kSlot:
      if (repeats.chosen) {
        answer.sends = 1;
        answer.again = 1;
        answer.seq = repeats.head;
        repeats.chosen = false;
        repeats.choose();
      } else if (next != end && newer(credit, next) && Seq(next - acked) < window) {
        answer.sends = 1;
        answer.seq = next;
        next = next + 1;
      }
      break;
    default:  // kTimeout
      if (next != acked) repeats.timeout(acked, next);
      break;
  }
  answer.acked = acked;
  answer.next = next;
  answer.credit = credit;
  answers.write(answer);
}

}  // namespace catchment::hls_model
