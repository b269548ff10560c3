// The module sender, one event at a time as hls/sender.cpp takes them.
#include <cstdint>
#include <cstring>
#include <memory>

#include "rtl/harness/top.hpp"

namespace {

constexpr int kSettle = 8;            // clocks for an event to show in all registers
constexpr std::uint32_t kRto = 3000;  // clocks: no timeout comes unasked between two events
constexpr int kTimeoutWithin = 4 * 3000;

enum Kind : std::uint32_t { kBegin, kData, kHeard, kSlot, kTimeout };

void clock(Top& top) {
  top.clk = 0;
  top.eval();
  top.clk = 1;
  top.eval();
}

// stream_settings_t {enable, gen[16], base_seq[32], window[16], slots[21]}, first field in the high
// bits
void set_stream(Top& top, std::uint32_t base, std::uint32_t window, std::uint32_t slots) {
  const std::uint64_t low =
      (static_cast<std::uint64_t>(base) << 37) | (static_cast<std::uint64_t>(window) << 21) | slots;
  const std::uint64_t high = (1ULL << 21) | (1ULL << 5) | (base >> 27);
  top.settings[0] = static_cast<std::uint32_t>(low);
  top.settings[1] = static_cast<std::uint32_t>(low >> 32);
  top.settings[2] = static_cast<std::uint32_t>(high);
  top.window = static_cast<std::uint16_t>(window);
}

}  // namespace

// Events of four words, answers of seven; returns how often a timeout came unasked.
extern "C" std::uint64_t run_sender(const std::uint32_t* events, std::uint64_t count,
                                    std::uint32_t* answers) {
  const auto top = std::make_unique<Top>();
  std::uint64_t unasked = 0;
  top->timing[3] = kRto;
  top->timing[2] = kRto;
  top->timing[1] = 0;
  top->timing[0] = 0;
  top->reader_idle = 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t* const event = events + 4 * i;
    std::uint32_t row[7] = {};
    switch (event[0]) {
      case kBegin:
        top->run = 0;
        set_stream(*top, event[1], event[2], event[3]);
        clock(*top);
        clock(*top);
        top->run = 1;
        break;
      case kData:
        top->put = 1;
        clock(*top);
        top->put = 0;
        break;
      case kHeard:
        top->present = 1;
        top->present_ack = event[1];
        top->present_credit = event[2];
        top->clk = 0;
        top->eval();
        row[2] = top->impossible;
        clock(*top);
        top->present = 0;
        top->commit = 1;
        clock(*top);
        top->commit = 0;
        break;
      case kSlot:
        top->clk = 0;
        top->eval();
        row[0] = top->m_valid;
        if (top->m_valid) {
          row[1] = top->m_again;
          row[3] = top->m_seq;
          top->m_ready = 1;
          clock(*top);
          top->m_ready = 0;
        }
        break;
      default:
        for (int waited = 0; waited < kTimeoutWithin && !top->timeout; ++waited) clock(*top);
        break;
    }
    for (int settle = 0; settle < kSettle; ++settle) {
      clock(*top);
      if (settle > 0 && top->timeout) ++unasked;
    }
    row[4] = top->acked;
    row[5] = top->next;
    row[6] = top->credit;
    std::memcpy(answers + 7 * i, row, sizeof row);
  }
  return unasked;
}
