// Switches that run luwu.p4, without their frames' bytes: p4src/include/ has each rule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fabric.hpp"
#include "occupancy.hpp"
#include "slot_table.hpp"
#include "window_minimum.hpp"

namespace catchment::performance {

struct SwitchTiming {
  Picos pipeline = 0;  // from a frame's last bit to its place in the egress queue
  Picos frame = 0;     // between frames that the pipeline takes
};

// A stream at a switch, as the rows of table `jobs` make it.
struct BranchShape {
  std::uint32_t at = 0;  // the switch
  wire::Mode mode = wire::Mode::kREDUCE;
  std::uint32_t members = 1;     // hosts or switches below
  std::uint32_t slots = 0;       // T; 0: nothing is added up
  Seq base = 0;                  // the first sequence number
  std::uint32_t data_bytes = 0;  // of its data frames, without FCS
  std::uint32_t stream = 0;      // which one it is, of all of the simulation
};

enum class Drop : std::uint8_t { kOldSeq, kBeyondWindow, kWrongDirection, kDown, kCount };

using DropCounts = std::array<std::uint64_t, static_cast<std::size_t>(Drop::kCount)>;

// What switches have counted.
struct SwitchCounts {
  DropCounts drops{};
  std::vector<std::array<Picos, Occupancy::kBins>> occupancy;  // by branch
};

class SwitchModel {
 public:
  explicit SwitchModel(Fabric& fabric) : fabric_(fabric) {}

  std::uint32_t add_switch(SwitchTiming timing);
  std::uint32_t add_branch(const BranchShape& shape);
  // What admits a member's frames at a branch, or those from above.
  std::uint32_t add_row(std::uint32_t branch, std::uint32_t wid, bool from_root);
  // The ways from a branch; those down in the order of the members.
  void set_up(std::uint32_t branch, const Outlet& out) { branches_[branch].up = out; }
  void add_down(std::uint32_t branch, const Outlet& out) { branches_[branch].down.push_back(out); }

  void on_frame(std::uint32_t row, Frame frame);

  // The switch forgets everything; while it is down, it drops what comes.
  void fail(std::uint32_t which, bool down);

  [[nodiscard]] std::uint64_t dropped(Drop why) const {
    return drops_[static_cast<std::size_t>(why)];
  }
  [[nodiscard]] const Occupancy& occupancy(std::uint32_t branch) const {
    return branches_[branch].occupancy;
  }

  [[nodiscard]] std::uint32_t stream(std::uint32_t row) const {
    return branches_[rows_[row].branch].shape.stream;
  }

  // What decides how it goes on.
  void hash(StateHash& state) const;
  // Slots that are in use have been so until now.
  void settle();
  [[nodiscard]] SwitchCounts counts() const;
  // What happened since these counts happens `times` more, which takes `by`; each stream is so many
  // frames further.
  void repeat(const SwitchCounts& before, std::uint64_t times, Picos by,
              const std::vector<std::uint32_t>& frames);

 private:
  struct Switch {
    SwitchTiming timing;
    Picos free_at = 0;
    bool down = false;
  };
  struct Branch {
    explicit Branch(const BranchShape& given);
    // The last number that a sender may be at: less than a window beyond what every receiver has.
    [[nodiscard]] std::optional<Seq> furthest() const;

    BranchShape shape;
    std::optional<SlotTable> slots;
    WindowMinimum windows;
    std::optional<Seq> acked;  // the largest ack from above
    Occupancy occupancy;
    std::vector<Outlet> down;
    std::optional<Outlet> up;
  };
  struct Row {
    std::uint32_t branch;
    std::uint32_t wid;
    bool from_root;
  };

  void relay(Branch& branch, Frame frame, Picos ready);
  void aggregate(Branch& branch, std::uint32_t wid, Frame frame, Picos ready);
  void merge(Branch& branch, std::uint32_t wid, Frame frame, Picos ready);
  void send(const Branch& branch, const Outlet& out, const Frame& frame, Picos ready);
  void to_members(const Branch& branch, const Frame& frame, Picos ready);
  void drop(Drop why) { ++drops_[static_cast<std::size_t>(why)]; }

  Fabric& fabric_;
  std::vector<Switch> switches_;
  std::vector<Branch> branches_;
  std::vector<Row> rows_;
  DropCounts drops_{};
};

}  // namespace catchment::performance
