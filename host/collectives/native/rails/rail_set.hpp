// The rails of one rank as one communicator (docs/explanation/rails.md).
//
// An all-reduce or a reduce that is long enough is split, and each rail carries a part of its
// elements; anything else goes over the rail that is best for it.  Nothing but the number of an
// operation, its size and the table of costs decides about a split, so all ranks split alike.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cost_table.hpp"
#include "group.hpp"

namespace catchment::host::rails {

struct Rail {
  std::string name;  // empty where there is but one
  std::shared_ptr<Group> group;
  std::uint32_t nominal = 0;
};

struct RailState {
  RailCost cost;
  std::uint64_t parts = 0;
  std::uint64_t bytes = 0;  // of the wire, one way
};

// An operation and its parts.  A part writes its own range of the result.
class RailOperation {
 public:
  explicit RailOperation(Call asked, std::uint64_t number)
      : call_(std::move(asked)), number_(number) {}

 private:
  friend class RailSet;
  struct Part {
    std::uint32_t rail = 0;
    std::shared_ptr<Operation> operation;
  };

  const Call call_;
  const std::uint64_t number_;
  std::atomic<bool> planned_{false};
  bool measured_ = false;
  std::vector<Part> parts_;  // once it is planned
};

class RailSet {
 public:
  // All rails have the same ranks and lanes.
  RailSet(std::vector<Rail> rails, Policy policy);
  RailSet(const RailSet&) = delete;
  RailSet& operator=(const RailSet&) = delete;
  ~RailSet();

  std::shared_ptr<RailOperation> start(Call call);
  // Waits until all parts are done, and turns all their engines meanwhile; false when that takes
  // longer than `limit`.
  bool wait(RailOperation& operation, Nanos limit);
  bool done(const RailOperation& operation) const;
  // Gives up the parts of which nothing was sent; false when all run to their end.
  bool cancel(RailOperation& operation);
  // Of an operation that is done.
  CollectiveOutcome outcome(const RailOperation& operation) const;
  std::optional<CollectiveFailure> failure() const;
  void close(Nanos linger);

  const std::vector<Rail>& rails() const { return rails_; }
  const Layout& layout() const { return rails_.front().group->layout(); }
  std::vector<RailState> states();
  std::uint32_t table_version();

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
  std::vector<Share> shares_of(const Call& call, std::uint64_t number) const;
  void run();

  std::vector<Rail> rails_;
  Policy policy_;
  std::mutex mutex_;
  std::condition_variable stirred_;
  CostTable table_;
  std::vector<RailSample> samples_;
  std::vector<RailState> states_;
  std::uint64_t started_ = 0;
  std::deque<std::shared_ptr<RailOperation>> waiting_;   // not planned
  std::deque<std::shared_ptr<RailOperation>> measured_;  // planned, not measured
  std::deque<std::shared_ptr<Report>> reports_;
  bool closing_ = false;
  std::mutex ending_;   // of close()
  std::thread thread_;  // where there are several rails
};

}  // namespace catchment::host::rails
