// A stream that obeys its laws for as many clocks as it is told, and then breaks one.
#include <cstdint>
#include <memory>

#include "rtl/harness/top.hpp"

extern "C" {

// Runs `clocks`; in the one numbered `breaks`, if it comes, a beat that waits vanishes. Returns the
// clocks.
std::uint64_t run_stream_check(std::uint64_t clocks, std::uint64_t breaks) {
  const auto context = std::make_unique<VerilatedContext>();
  const auto top = std::make_unique<Top>(context.get());
  top->data[0] = 1;
  top->ready = 0;
  std::uint64_t now = 0;
  for (; now < clocks; ++now) {
    top->rst = now < 2;
    top->valid = now >= 2 && now != breaks;
    top->clk = 0;
    top->eval();
    top->clk = 1;
    top->eval();
  }
  return now;
}
}
