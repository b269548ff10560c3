#include "rollback.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>
#include <utility>

#include "entity_reader.hpp"
#include "entity_sink.hpp"
#include "entity_writer.hpp"

namespace catchment::server {

namespace {

using p4::v1::Entity;
using p4::v1::Update;

// The longest request of single entries fits: 4 MiB of updates that delete some.
constexpr std::size_t kMostBytes = std::size_t{128} << 20;
constexpr std::size_t kUpdateBytes = 256;  // of an update in memory, beside its content

// Returns the request that reads all there is about the entity.
Entity read_request(const Entity& entity) {
  Entity request = entity;
  if (request.has_table_entry()) {
    auto& entry = *request.mutable_table_entry();
    entry.clear_action();
    entry.clear_controller_metadata();
    entry.clear_metadata();
    entry.clear_time_since_last_hit();
    entry.mutable_counter_data();
    entry.mutable_meter_config();
  }
  return request;
}

// A key without fields selects every entry (of a priority), so the one that is meant is looked for.
bool is_meant(const Entity& found, const Entity& entity) {
  if (!entity.has_table_entry()) {
    return true;
  }
  return found.table_entry().match_size() == entity.table_entry().match_size() &&
         found.table_entry().priority() == entity.table_entry().priority();
}

// Has no bound: what one update changes has to be whole, and the switch has it already.
class Entities final : public EntitySink {
 public:
  Entity& add() override { return found_.emplace_back(); }
  std::deque<Entity>& found() { return found_; }

 private:
  std::deque<Entity> found_;
};

std::deque<Entity> current(const Entity& entity, const Target& target) {
  Entities result;
  read_entity(read_request(entity), target, result);
  std::erase_if(result.found(), [&](const Entity& found) { return !is_meant(found, entity); });
  return std::move(result.found());
}

// An entry of the program's own keeps its action anyway, and may not be given one.
void allow_write(Entity& entity) {
  if (entity.has_table_entry() && entity.table_entry().is_const()) {
    entity.mutable_table_entry()->clear_is_const();
    entity.mutable_table_entry()->clear_action();
  }
}

std::vector<Update> inverses_of(const Update& update, const Target& target) {
  std::vector<Update> result;
  if (update.type() == Update::INSERT) {
    Update& inverse = result.emplace_back(update);
    inverse.set_type(Update::DELETE);
    return result;
  }
  for (Entity& entity : current(update.entity(), target)) {
    Update& inverse = result.emplace_back();
    inverse.set_type(update.type() == Update::DELETE ? Update::INSERT : Update::MODIFY);
    allow_write(entity);
    *inverse.mutable_entity() = std::move(entity);
  }
  return result;
}

}  // namespace

void Rollback::make_room_for(const std::vector<Update>& inverses) {
  std::size_t bytes = bytes_;
  for (const Update& inverse : inverses) {
    bytes += inverse.ByteSizeLong() + kUpdateBytes;
  }
  if (bytes > kMostBytes) {
    throw RpcError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                   "what would take the batch back has more than " +
                       std::to_string(kMostBytes >> 20) +
                       " MiB: write fewer entries or cells in one batch, or CONTINUE_ON_ERROR");
  }
  bytes_ = bytes;
}

void Rollback::write(const Update& update, Target& target) {
  std::vector<Update> inverses;
  // What cannot be read cannot be written either: the write then says what is wrong.
  try {
    inverses = inverses_of(update, target);
  } catch (const RpcError&) {
    inverses.clear();
  }
  make_room_for(inverses);
  write_entity(update, target);
  std::move(inverses.begin(), inverses.end(), std::back_inserter(inverses_));
}

void Rollback::undo(Target& target) {
  try {
    for (; !inverses_.empty(); inverses_.pop_back()) {
      write_entity(inverses_.back(), target);
    }
  } catch (const RpcError& error) {
    throw RpcError(grpc::StatusCode::INTERNAL,
                   std::string("the batch failed and cannot be rolled back: ") + error.what());
  }
}

}  // namespace catchment::server
