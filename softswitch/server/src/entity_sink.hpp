// Takes the entities that a Read selects, one after the other.
#pragma once

#include "p4/v1/p4runtime.pb.h"

namespace catchment::server {

class EntitySink {
 public:
  virtual ~EntitySink() = default;

  // Returns the message to fill in; the reference is good until the next call. Throws RpcError when
  // there is no room for more.
  virtual p4::v1::Entity& add() = 0;
};

}  // namespace catchment::server
