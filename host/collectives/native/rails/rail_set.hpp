// The rails of one rank as one communicator (docs/explanation/rails.md).
//
// An all-reduce or a reduce that is long enough is split, and each rail carries a part of its
// elements; anything else goes over the rail that is best for it.  Nothing but the operations so
// far, an operation's size and the table of costs decides about a split, so all ranks split alike.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cost_meter.hpp"
#include "council.hpp"
#include "group.hpp"

namespace catchment::host::rails {

struct Rail {
  std::string name;  // empty where there is but one
  std::shared_ptr<Group> group;
  std::uint32_t nominal = 0;
  // The stream on which the council meets, and how the rail's stream goes over each rail, over
  // itself too; where one of them has none, a rail that fails ends the set.
  std::shared_ptr<Group> control{};
  std::vector<Way> ways{};
};

// The length of which a rail's state tells the cost.
inline constexpr std::uint64_t kShownBytes = 4 << 20;

struct RailState {
  RailCost cost;  // of an operation of kShownBytes
  std::uint64_t parts = 0;
  std::uint64_t bytes = 0;  // of the wire, one way
  Health health = Health::kUp;
  bool joined = true;           // whether it has ever joined all ranks; believed until a verdict
  std::uint32_t carrier = 0;    // the rail that its stream goes over
  std::uint64_t incidents = 0;  // how often it was found broken
  Nanos last_incident = 0;      // from the last sum to the verdict, of the last one
};

// An operation and its parts.  A part writes its own range of the result.
class RailOperation {
 public:
  explicit RailOperation(Call asked, std::uint64_t number)
      : call_(std::move(asked)), number_(number), started_at_(monotonic_now()) {}

 private:
  friend class RailSet;
  struct Part {
    std::uint32_t rail = 0;
    std::shared_ptr<Operation> operation;
  };

  const Call call_;
  const std::uint64_t number_;
  const Nanos started_at_;
  std::atomic<bool> planned_{false};
  std::vector<Part> parts_;                   // once it is planned
  std::optional<CollectiveFailure> refused_;  // without parts: the set had failed
};

class RailSet final : private CouncilMember {
 public:
  // All rails have the same ranks and lanes.  `timeout`: of an operation that waits for a verdict
  // of the council; `absent`: how long all switches together may answer nothing, 0: the timeout;
  // `bell`: which the control streams ring.
  RailSet(std::vector<Rail> rails, Policy policy, Nanos timeout, Nanos absent,
          std::shared_ptr<Bell> bell);
  ~RailSet() override;

  std::shared_ptr<RailOperation> start(Call call);
  // Waits until all parts are done, and turns all their engines meanwhile; false when that takes
  // longer than `limit`.
  bool wait(RailOperation& operation, Nanos limit);
  bool done(const RailOperation& operation) const;
  // It is done, and a part of it has failed.
  bool failed(const RailOperation& operation) const;
  // Gives up the parts of which nothing was sent; false when all run to their end.
  bool cancel(RailOperation& operation);
  // Of an operation that is done.
  CollectiveOutcome outcome(const RailOperation& operation);
  std::optional<CollectiveFailure> failure();
  void close(Nanos linger);

  const std::vector<Rail>& rails() const { return rails_; }
  const Layout& layout() const { return rails_.front().group->layout(); }
  std::vector<RailState> states();
  std::uint32_t table_version();
  // How an all-reduce of so many elements would be split now, were it no sample of an idle rail.
  std::vector<Share> shares(std::uint64_t elements);
  // What the rails cost for an all-reduce of so many elements, as all ranks have measured it.
  std::vector<RailCost> costs(std::uint64_t elements);

 private:
  // A report of all ranks about what the rails have cost; counts from operation `counts_at` on.
  struct Report {
    std::uint64_t counts_at = 0;
    std::vector<RailSample> own;
    std::vector<RailSample> all;
    std::shared_ptr<Operation> gathering;
  };

  bool splits(const Call& call) const;
  // Plans the operations that wait, up to one that needs a report that has not come.
  void plan_waiting();
  void plan(RailOperation& operation);
  void report(std::uint64_t number);
  void measure();
  std::vector<Share> shares_of(const Call& call);
  // The costs of the rails in `up` for so many elements; the others have no rate.
  std::vector<RailCost> usable_costs(std::uint32_t up, std::uint64_t elements) const;
  void run();

  std::uint64_t freeze() override;
  void decided(const Verdict& verdict, const RailHealth& health, std::uint32_t joined) override;
  void overdue(Nanos began, Nanos away) override;
  void fail_all(const CollectiveFailure& failure);
  // What keeps the ranks from agreeing, as an operation sees it that has waited since `since`; none
  // where a rail joins all ranks, or no switch has carried enough to tell.
  std::optional<CollectiveFailure> nothing_joins(Nanos since) const;
  Nanos stalled_for() override;
  Nanos last_sum_at(std::uint32_t rail) override;
  // Which rails operations use from `from` on.
  struct Change {
    std::uint64_t from = 0;
    std::uint32_t up = 0;
  };

  std::vector<Rail> rails_;
  Policy policy_;
  Nanos timeout_;
  Nanos absent_;
  std::mutex mutex_;
  std::condition_variable stirred_;  // something waits to be planned
  std::condition_variable thawed_;   // a verdict has come
  CostTable table_;
  CostMeter meter_;
  // How many operations of a class there were, and how many of them have tried something.
  struct Tries {
    std::uint64_t operations = 0;
    std::uint64_t turn = 0;
  };
  std::array<Tries, kClasses> tries_{};
  // By elements, and whether it is not to be split.
  std::map<std::pair<std::uint64_t, bool>, std::vector<Share>> kept_;
  std::vector<RailState> states_;
  std::uint64_t started_ = 0;
  std::deque<std::shared_ptr<RailOperation>> waiting_;   // not planned
  std::deque<std::shared_ptr<RailOperation>> measured_;  // planned, not measured
  std::deque<std::shared_ptr<Report>> reports_;
  bool frozen_ = false;  // a round of the council is under way
  std::uint32_t up_;
  std::vector<std::uint64_t> up_since_;      // each rail, which operation
  std::deque<Change> changes_;               // agreed, of operations that are not planned
  std::optional<CollectiveFailure> broken_;  // every further operation fails so
  Nanos overdue_since_ = kNever;             // when the round began that does not come
  bool closing_ = false;
  std::mutex ending_;   // of close()
  std::thread thread_;  // where there are several rails
  std::unique_ptr<Council> council_;
};

}  // namespace catchment::host::rails
