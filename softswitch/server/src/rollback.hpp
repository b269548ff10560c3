// Takes back the updates of a batch that must be carried out whole or not at all.
#pragma once

#include <cstddef>
#include <vector>

#include "p4/v1/p4runtime.pb.h"
#include "target.hpp"

namespace catchment::server {

// Remembers, as updates, what would bring the former state back.
class Rollback {
 public:
  // Carries out the update. Throws RpcError when it is refused; it is then not remembered. One that
  // would have more remembered than there is room for is refused, too: a few bytes can write all
  // cells of a register.
  void write(const p4::v1::Update& update, Target& target);

  // Brings back what was before the first write(). Throws RpcError(INTERNAL) when that fails, which
  // the switch has no reason for.
  void undo(Target& target);

 private:
  void make_room_for(const std::vector<p4::v1::Update>& inverses);

  std::vector<p4::v1::Update> inverses_;  // in the order of the updates
  std::size_t bytes_ = 0;                 // of them
};

}  // namespace catchment::server
