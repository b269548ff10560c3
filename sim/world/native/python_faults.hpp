// Faults as Python gives them: an object with the attributes of sim/world/faults.py.
#pragma once

#include <pybind11/pybind11.h>

#include "sim/world/native/line.hpp"

namespace catchment::world {

inline LineFaults faults_of(const pybind11::handle& faults) {
  const auto number = [](const pybind11::handle& of, const char* name) {
    return of.attr(name).cast<double>();
  };
  const pybind11::object burst = faults.attr("burst");
  LineFaults out;
  out.loss = number(faults, "loss");
  out.damage = number(faults, "damage");
  out.duplicate = number(faults, "duplicate");
  out.reorder = number(faults, "reorder");
  out.replay = number(faults, "replay");
  out.burst = {number(burst, "enter"), number(burst, "leave"), number(burst, "loss")};
  out.delay = faults.attr("delay").cast<Picos>();
  out.jitter = faults.attr("jitter").cast<Picos>();
  return out;
}

}  // namespace catchment::world
