#include "schedule.hpp"

#include <algorithm>
#include <utility>

namespace catchment::host {
namespace {

// FNV-1a, over one priority after the other.
std::uint32_t hashed(std::uint32_t hash, int priority) {
  return (hash ^ static_cast<std::uint32_t>(priority)) * 16777619U;
}

bool precedes(const Operation& a, const Operation& b) {
  return a.call.priority != b.call.priority ? a.call.priority > b.call.priority : a.id < b.id;
}

}  // namespace

void Schedule::submit(std::shared_ptr<Operation> operation) {
  operation->id = submitted_++;
  priorities_.push_back(operation->call.priority);
  waiting_.emplace(operation->id, std::move(operation));
}

bool Schedule::next(Place& place) {
  learn();
  if (position_ < filler_until_) {
    ++position_;
    place = {};
    return true;
  }
  if (running_ && running_->sent_on_trial()) running_.reset();
  if (idle() || (running_ && running_->on_trial())) return false;
  if (position_ - agenda_at_ >= slots_) {
    for (; hashed_ < counted_; ++hashed_) {
      hash_ = hashed(hash_, priorities_.front());
      priorities_.pop_front();
    }
    agenda_at_ = position_++;
    after_agenda_ = true;
    place = {.content = Content::kAgenda, .operation = nullptr, .covers = hashed_};
    return true;
  }
  if (!running_ || after_agenda_) choose();
  after_agenda_ = false;
  Operation& operation = *running_;
  if (!operation.begun) {
    operation.begun = true;
    ++position_;
    place = {.content = Content::kBegin, .operation = running_.get()};
    if (operation.rides) operation.tried = operation.trial;
    // One whose data, if any, are in this place has said all, unless E is guessed.
    const bool said = operation.vectors == 0 || (operation.rides && operation.trial == 0);
    if (said && !operation.cancelled) running_.reset();
    return true;
  }
  if (!operation.agreed && operation.cancelled) return false;
  if (operation.tables_sent < operation.tables) {
    ++position_;
    place = {
        .content = Content::kTable, .operation = running_.get(), .index = operation.tables_sent++};
    return true;
  }
  if (operation.tried < operation.trial) {
    ++position_;
    place = {.content = Content::kData,
             .operation = running_.get(),
             .index = operation.tried++,
             .trial = true};
    return true;
  }
  if (!operation.agreed && negotiates(operation.call.signature.scaling)) return false;
  ++position_;
  place = {.content = Content::kData, .operation = running_.get(), .index = operation.next++};
  if (operation.next == operation.vectors) running_.reset();
  return true;
}

Agenda Schedule::agenda() const { return {static_cast<std::uint32_t>(submitted_), hash_}; }

void Schedule::learn() {
  for (; !counts_.empty() && counts_.front().position <= position_; counts_.pop_front()) {
    counted_ = std::max(counted_, counts_.front().called);
  }
  for (; !verified_.empty() && verified_.front().position <= position_; verified_.pop_front()) {
    known_ = std::max(known_, verified_.front().called);
  }
}

// The first of those that everyone knows; without one, the next in the order of the calls.
void Schedule::choose() {
  std::shared_ptr<Operation> best = running_;
  for (const auto& operation : paused_) {
    if (!best || precedes(*operation, *best)) best = operation;
  }
  for (const auto& [id, operation] : waiting_) {
    if (id >= known_) break;
    if (!best || precedes(*operation, *best)) best = operation;
  }
  if (!best) best = waiting_.begin()->second;
  if (best == running_) return;
  if (running_) paused_.push_back(std::move(running_));
  waiting_.erase(best->id);
  std::erase(paused_, best);
  running_ = std::move(best);
}

bool Schedule::on_agenda(std::uint64_t position, std::uint64_t covers,
                         const std::vector<Agenda>& said) {
  std::uint32_t least = distance(static_cast<std::uint32_t>(counted_), said.front().called);
  for (const Agenda& agenda : said) {
    if (agenda.hash != said.front().hash) return false;
    least = std::min(least, distance(static_cast<std::uint32_t>(counted_), agenda.called));
  }
  counts_.push_back({position + slots_, counted_ + least});
  verified_.push_back({position + slots_, covers});
  return true;
}

void Schedule::on_mismatch(std::uint64_t position, const Operation& operation,
                           const std::vector<Place>& given) {
  if (running_ && !running_->sent_on_trial()) paused_.push_back(std::move(running_));
  running_.reset();
  for (auto place = given.rbegin(); place != given.rend(); ++place) {
    if (place->operation == nullptr || place->operation == &operation) continue;
    set_aside(place->operation->shared_from_this());
    if (place->content == Content::kData) {
      std::uint32_t& next = place->trial ? place->operation->tried : place->operation->next;
      next = std::min(next, place->index);
    } else if (place->content == Content::kTable) {
      place->operation->tables_sent = std::min(place->operation->tables_sent, place->index);
    } else {
      place->operation->begun = false;
    }
  }
  std::erase_if(paused_, [&](const auto& other) { return other.get() == &operation; });
  std::vector<std::shared_ptr<Operation>> begun;
  for (auto& other : paused_) {
    if (other->begun) {
      begun.push_back(std::move(other));
    } else {
      waiting_.emplace(other->id, std::move(other));
    }
  }
  paused_ = std::move(begun);
  filler_until_ = position + slots_;
  agenda_at_ = filler_until_;
  after_agenda_ = false;
}

void Schedule::set_aside(std::shared_ptr<Operation> operation) {
  if (std::ranges::find(paused_, operation) == paused_.end()) {
    paused_.push_back(std::move(operation));
  }
}

void Schedule::clear() {
  waiting_.clear();
  paused_.clear();
  running_.reset();
}

}  // namespace catchment::host
