// Looks for what frames reach that lies outside of the state's memory: a pointer there means
// nothing to another process.
#pragma once

#include <string>
#include <vector>

#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/rt/program.hpp"
#include "state_memory.hpp"

namespace catchment::softswitch {

class StrayFinder {
 public:
  explicit StrayFinder(const StateMemory& memory) : memory_(memory) {}

  void look_at(const std::string& name, const rt::Table& table, const rt::TableLayout& layout);
  void look_at(const rt::Engine& engine);
  /// Takes note unless all of these bytes lie in the memory; nothing is where there are none.
  void look_at(const std::string& what, const void* place, std::size_t bytes);

  /// What was found, in words.
  [[nodiscard]] const std::vector<std::string>& strays() const { return strays_; }

 private:
  bool inside(const std::string& what, const void* place, std::size_t bytes);
  void look_at_action(const std::string& what, const rt::BoundAction* action);
  void look_at_index(const std::string& what, const rt::HashIndex& index,
                     const rt::TableLayout& layout);
  void look_at_row(const std::string& what, const rt::Row& row, const rt::TableLayout& layout);

  const StateMemory& memory_;
  std::vector<std::string> strays_;
};

}  // namespace catchment::softswitch
