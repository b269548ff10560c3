// What a workload does: operations that wait for others, on hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_model.hpp"
#include "software_model.hpp"

namespace catchment::performance {

enum class Action : std::uint8_t {
  kJoin,     // takes no time: waits for others
  kDelay,    // takes `amount` ps
  kCompute,  // takes `amount` ps of `target`, a processor, after what that was given before
  kPush,     // `amount` frames of `target`, a member
  kPull,     // the next message of `target`, a member, which has `amount` frames
};

struct Operation {
  Action action = Action::kJoin;
  std::uint32_t target = 0;
  std::int64_t amount = 0;
  std::uint32_t waits = 0;  // operations that must end first
  Picos began = -1;
  Picos ended = -1;
};

class Operations {
 public:
  Operations(Fabric& fabric, NicModel& nics, SoftwareModel& programs)
      : fabric_(fabric), nics_(nics), programs_(programs), source_(fabric.world.add_node()) {}

  std::uint32_t add(Action action, std::uint32_t target, std::int64_t amount);
  // `second` begins when `first` has ended, and all others that it waits for.
  void order(std::uint32_t first, std::uint32_t second);
  // Begins what waits for nothing. Throws std::logic_error when called twice.
  void start();

  void on_done(std::uint32_t which);

  // When the last of those that take a known time ends, of all that have begun.
  [[nodiscard]] Picos busy_until() const { return busy_until_; }
  [[nodiscard]] std::size_t left() const { return left_; }
  [[nodiscard]] const std::vector<Operation>& all() const { return operations_; }

 private:
  struct Edge {
    std::uint32_t first;
    std::uint32_t second;
  };

  void begin(std::uint32_t which);
  void transfer(std::uint32_t which);
  void end_at(std::uint32_t which, Picos at);

  Fabric& fabric_;
  NicModel& nics_;
  SoftwareModel& programs_;
  std::uint32_t source_;
  std::vector<Operation> operations_;
  std::vector<Edge> edges_;             // until start()
  std::vector<std::uint32_t> offsets_;  // into followers_, by operation
  std::vector<std::uint32_t> followers_;
  std::vector<Picos> processors_;  // when each is free
  Picos busy_until_ = 0;
  std::size_t left_ = 0;
};

}  // namespace catchment::performance
