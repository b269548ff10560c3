// The Verilated model as benches use it. Once it has failed (failures.hpp) it stands still: its
// outputs stay as they are, and the program hears of the failure when the bench returns.
#pragma once

#include <memory>

#include "Model.h"
#include "rtl/harness/failures.hpp"

class Top : public Model {
 public:
  using Model::Model;

  void eval() {
    if (ended_) return;
    try {
      Model::eval();
    } catch (const catchment::rtl::Ended&) {
      ended_ = true;
    }
  }

 private:
  bool ended_ = false;
};

// A context in which registers and memories hold anything at first, as in hardware.
inline std::unique_ptr<VerilatedContext> powered_up(std::uint32_t seed) {
  auto context = std::make_unique<VerilatedContext>();
  context->randReset(2);
  context->randSeed(static_cast<int>(seed >> 1) + 1);  // 0 means the time
  return context;
}

// The first clocks of a reset, in which it goes through registers of its own. Nobody looks at the
// outputs, and nothing is asserted: registers hold anything.
template <typename Module>
void begin_reset(Module& top) {
  top.contextp()->assertOn(false);
  top.rst = 1;
  for (int clock = 0; clock < 4; ++clock) {
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
  }
  top.contextp()->assertOn(true);
}
