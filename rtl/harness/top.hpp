// The Verilated model as benches use it. Once it has failed (failures.hpp) it stands still: its
// outputs stay as they are, and the program hears of the failure when the bench returns.
#pragma once

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
