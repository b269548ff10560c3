// Which vector has which place in the stream: the same on all ranks, whatever each has received.
// Pure: no clock, no socket.
//
// What decides about place k is what was agreed in places up to k - T, and a rank can only send k
// when it has consumed all of those (the window is at most T).  So every rank decides alike:
//
//   - operations begin in the order of the calls: one vector of signatures, then the data; short
//     ones whose E is negotiated send them on a guess, and the next begins when that has proved
//     right, or else the data have left again;
//   - every T places there is an agenda: each rank says how many operations were called there, and
//     a hash over the priorities of those that all had called at the agenda before;
//   - once all hashes of an agenda agree, the operations it covers are known everywhere, and right
//     after an agenda, and whenever an operation ends, the known one of highest priority goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "catchment/common/serial.hpp"
#include "operation.hpp"

namespace catchment::host {

enum class Content : std::uint8_t {
  kBegin,   // signatures of `operation`
  kTable,   // part `index` of what its vectors need
  kData,    // vector `index` of `operation`
  kAgenda,  // what every rank has called
  kFiller,  // anything: no rank reads it
};

struct Place {
  Content content = Content::kFiller;
  Operation* operation = nullptr;  // alive until it is done: the engine holds it
  std::uint32_t index = 0;
  std::uint64_t covers = 0;  // kAgenda: operations whose priorities are in the hash
  bool trial = false;        // kData: sent on a guess; the sum counts if it was right
  Scale scale = {};          // kData: that it was sent with
};

// What a rank says in an agenda.
struct Agenda {
  std::uint32_t called = 0;
  std::uint32_t hash = 0;

  friend bool operator==(const Agenda&, const Agenda&) = default;
};

class Schedule {
 public:
  explicit Schedule(std::uint32_t slots) : slots_(slots) {}

  // Adds an operation; the engine submits operations in the order of their calls.
  void submit(std::shared_ptr<Operation> operation);

  // Writes into `place` what may be sent at `position` (counted from 0); false while this rank has
  // nothing to say there yet.  Each position is asked for until it is given, then the next one.
  bool next(Place& place);
  std::uint64_t position() const { return position_; }

  // What this rank says in the agenda that `next` has just given.
  Agenda agenda() const;

  // All ranks' agendas of a position were received, in order of positions.  False when they
  // disagree about priorities.
  bool on_agenda(std::uint64_t position, std::uint64_t covers, const std::vector<Agenda>& said);
  // The ranks want different operations at `position`, where `operation` begins here.  What was
  // given after it, up to position + T, is filler; what began there begins again afterwards.
  // `given`: what the places after `position` hold, in order.
  void on_mismatch(std::uint64_t position, const Operation& operation,
                   const std::vector<Place>& given);

  // Operations that have not ended their sending.
  bool idle() const { return waiting_.empty() && !running_ && paused_.empty(); }
  void clear();

 private:
  struct Known {
    std::uint64_t position = 0;  // counts from here on
    std::uint64_t called = 0;
  };

  void learn();
  void choose();
  void set_aside(std::shared_ptr<Operation> operation);

  std::uint64_t slots_;
  std::uint64_t position_ = 0;
  std::uint64_t agenda_at_ = 0;  // the last agenda, or where the first may not be before
  std::uint64_t filler_until_ = 0;
  std::uint64_t submitted_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Operation>> waiting_;  // not begun, by id
  std::shared_ptr<Operation> running_;
  std::vector<std::shared_ptr<Operation>> paused_;

  // Priorities of operations [hashed_, submitted_), and the hash over those before.
  std::deque<int> priorities_;
  std::uint64_t hashed_ = 0;
  std::uint32_t hash_ = 0;
  std::uint64_t counted_ = 0;  // called by all, by the latest agenda that counts
  std::uint64_t known_ = 0;    // and of agreed priorities
  std::deque<Known> counts_;   // received, and not counting yet
  std::deque<Known> verified_;
  bool after_agenda_ = false;
};

}  // namespace catchment::host
