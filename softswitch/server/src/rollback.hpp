// Takes back the updates of a batch that must be carried out whole or not at all.
#pragma once

#include <vector>

#include "p4/v1/p4runtime.pb.h"
#include "target.hpp"

namespace catchment::server {

// Remembers, as updates, what would bring the former state back.
class Rollback {
 public:
  // Carries out the update. Throws RpcError when it is refused; it is then not remembered.
  void write(const p4::v1::Update& update, Target& target);

  // Brings back what was before the first write(). Throws RpcError(INTERNAL) when that fails, which
  // the switch has no reason for.
  void undo(Target& target);

 private:
  std::vector<p4::v1::Update> inverses_;  // in the order of the updates
};

}  // namespace catchment::server
