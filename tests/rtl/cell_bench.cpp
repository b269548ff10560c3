// A cell in a module of its own (cells_alone.py) behind one C function: a clock's pins in, its
// outputs back.  A model may have delays: a clock lasts 10 ns.
#include <cstdint>
#include <cstring>
#include <memory>

#include "rtl/harness/top.hpp"

namespace {

// Has the model see its pins, and what it delays happen, up to a time in ps.
void settle(Top& top, std::uint64_t until) {
  top.eval();
  while (top.eventsPending() && top.nextTimeSlot() <= until) {
    top.contextp()->time(top.nextTimeSlot());
    top.eval();
  }
  top.contextp()->time(until);
  top.eval();
}

}  // namespace

extern "C" void run_cell(const std::uint8_t* pins, std::uint64_t clocks, std::uint8_t* outputs) {
  const auto context = std::make_unique<VerilatedContext>();  // time begins anew
  const auto top = std::make_unique<Top>(context.get());
  constexpr std::uint64_t kHalf = 5000;
  for (std::uint64_t i = 0; i < clocks; ++i) {
    std::memcpy(&top->pins, pins + i * sizeof top->pins, sizeof top->pins);
    top->clk = 0;
    settle(*top, 2 * kHalf * (i + 1));
    top->clk = 1;
    settle(*top, 2 * kHalf * (i + 1) + kHalf - 1);
    std::memcpy(outputs + i * sizeof top->outputs, &top->outputs, sizeof top->outputs);
  }
}
