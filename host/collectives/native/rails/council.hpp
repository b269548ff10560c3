// Rounds in which all ranks tell each other, over all rails at once, how far they are and which
// rails fail them (docs/explanation/rail-failures.md).
//
// A round is an all-gather of one record on a stream of its own on every rail; the first rail that
// brings it counts, since all bring the same.  A rank takes part as soon as it hears that another
// one waits for it, whatever its application does, so a rail over which a round does not come while
// it comes over another one is broken, and no rank is only late.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "group.hpp"
#include "lateness.hpp"
#include "own_lateness.hpp"
#include "rail_health.hpp"

namespace catchment::host::rails {

// Wakes the council; may be rung with any lock held.
class Bell {
 public:
  void ring();
  // Whether it was rung since the last time, or within `limit`.
  bool wait(Nanos limit);

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  bool is_rung_ = false;
};

// Whom the council serves.
class CouncilMember {
 public:
  CouncilMember() = default;
  CouncilMember(const CouncilMember&) = delete;
  CouncilMember& operator=(const CouncilMember&) = delete;
  virtual ~CouncilMember() = default;

  // A round begins: no operation is split until the verdict.  The number of those that were.
  virtual std::uint64_t freeze() = 0;
  // `joined`: rails (bits) over which some round has ever come to this rank.
  virtual void decided(const Verdict& verdict, const RailHealth& health, std::uint32_t joined) = 0;
  // A round that began at `began` does not come; for how long none of the switches has answered.
  virtual void overdue(Nanos began, Nanos away) = 0;
  // How long some operation has waited without any sum.
  virtual Nanos stalled_for() = 0;
  // When a sum of all ranks last came over a rail itself; 0: none has.
  virtual Nanos last_sum_at(std::uint32_t rail) = 0;
};

class Council {
 public:
  // `controls`: a stream of each rail; its `hailed` rings `bell`.
  Council(std::vector<std::shared_ptr<Group>> controls, std::uint32_t setup,
          std::shared_ptr<Bell> bell, CouncilMember& member);
  Council(const Council&) = delete;
  Council& operator=(const Council&) = delete;
  ~Council();

  // Ends the thread and the streams.
  void close(Nanos linger);

 private:
  struct Gathering {
    std::uint32_t rail = 0;
    RoundRecord own;
    std::vector<RoundRecord> all;
    std::shared_ptr<Operation> operation;
    Lateness lateness;
  };

  void run();
  void round(Nanos now);
  std::shared_ptr<Gathering> start(std::uint32_t rail, const RoundRecord& record);
  // The first gathering of a round that is done; none when the council closes.
  std::shared_ptr<Gathering> first_of(const std::vector<std::shared_ptr<Gathering>>& round);
  void take_in_late_rounds(Nanos now);
  // A rail that still brings sums, or words of every rank, is alive.
  void hear_rails();
  void forget_done();
  std::uint32_t suspects(Nanos now) const;
  std::uint32_t settled() const;
  std::uint32_t rank() const { return controls_.front()->layout().rank; }

  std::vector<std::shared_ptr<Group>> controls_;
  std::uint32_t setup_;
  std::shared_ptr<Bell> bell_;
  CouncilMember& member_;
  RailHealth health_;
  OwnLateness own_lateness_;
  std::uint32_t asked_;
  std::uint32_t rounds_ = 0;
  std::deque<std::shared_ptr<Gathering>> pending_;  // not done, oldest first
  std::uint32_t joined_ = 0;
  std::uint32_t failed_ = 0;  // rails (bits) over which no round goes any more
  Nanos last_round_ = 0;
  Nanos last_look_ = 0;
  Nanos stall_gap_ = 0;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace catchment::host::rails
