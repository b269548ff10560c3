// Collects the entities of a Read into messages of bounded size.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "p4/v1/p4runtime.pb.h"

namespace catchment::server {

// Clients take messages of at most 4 MB by default, and reads have no bound.
class EntitySink {
 public:
  // Returns the message to fill in; the reference is good until the next call.
  p4::v1::Entity& add() {
    if (responses_.empty() || responses_.back().entities_size() >= kEntitiesPerMessage) {
      responses_.emplace_back();
    }
    return *responses_.back().add_entities();
  }

  const std::vector<p4::v1::ReadResponse>& responses() const { return responses_; }

  // Returns the messages, and is empty again.
  std::vector<p4::v1::ReadResponse> take() { return std::exchange(responses_, {}); }

 private:
  static constexpr int kEntitiesPerMessage = 2048;
  std::vector<p4::v1::ReadResponse> responses_;
};

}  // namespace catchment::server
