// Puts the entities of a Read into messages of bounded size, as the bytes that its client gets.
#pragma once

#include <cstddef>

#include "entity_sink.hpp"
#include "unsent_messages.hpp"

namespace catchment::server {

// An entity takes some twenty times as much memory as on the wire, so only those of the message
// that is being filled exist as such.
class EntityMessages final : public EntitySink {
 public:
  explicit EntityMessages(UnsentMessages& messages) : messages_(messages) {}

  p4::v1::Entity& add() override;

  // Hands on what add() was filled in with since the last message.
  void finish();

 private:
  void settle();
  void hand_on();

  UnsentMessages& messages_;
  p4::v1::ReadResponse filling_;
  p4::v1::Entity* last_ = nullptr;  // that of the last call of add()
  std::size_t bytes_ = 0;           // of `filling_`, without `last_`
};

}  // namespace catchment::server
