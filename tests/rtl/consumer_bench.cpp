// The module consumer, one event at a time as hls/consumer.cpp takes them.
#include <cstdint>
#include <cstring>
#include <memory>

#include "rtl/harness/top.hpp"

namespace {

constexpr int kWindow = 64;
constexpr int kSettle = kWindow + 8;  // ack passes one frame a clock

enum Kind : std::uint32_t { kBegin, kArrived, kPop };
enum Verdict : std::uint32_t { kNone, kTaken, kRepeated, kOutside, kHanded, kNothing };

void clock(Top& top) {
  top.clk = 0;
  top.eval();
  top.clk = 1;
  top.eval();
}

}  // namespace

// Events of three words, answers of four.
extern "C" void run_consumer(const std::uint32_t* events, std::uint64_t count,
                             std::uint32_t* answers) {
  const auto top = std::make_unique<Top>();
  top->reader_idle = 1;
  top->missing_ready = 1;
  top->rst = 1;
  clock(*top);
  top->rst = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t* const event = events + 3 * i;
    std::uint32_t verdict = kNone;
    switch (event[0]) {
      case kBegin:
        top->enable = 0;
        top->base = event[1];
        top->window = static_cast<std::uint16_t>(event[2]);
        clock(*top);
        clock(*top);
        top->enable = 1;
        for (int waited = 0; waited < 4 * kWindow && !top->run; ++waited) clock(*top);
        break;
      case kArrived:
        top->present_seq = event[1];
        top->clk = 0;
        top->eval();
        verdict = top->repeated ? kRepeated : top->outside ? kOutside : kTaken;
        top->take = verdict == kTaken;
        top->take_seq = event[1];
        clock(*top);
        top->take = 0;
        break;
      default:
        top->clk = 0;
        top->eval();
        verdict = top->ready ? kHanded : kNothing;
        top->pop = top->ready;
        clock(*top);
        top->pop = 0;
        break;
    }
    for (int settle = 0; settle < kSettle; ++settle) clock(*top);
    const std::uint32_t row[4] = {verdict, top->ack, top->consumed, top->credit};
    std::memcpy(answers + 4 * i, row, sizeof row);
  }
}
