#include "switch_model.hpp"

#include <algorithm>

namespace catchment::performance {

using wire::Flag;
using wire::Mode;
using wire::PacketType;

namespace {

void set_window(Frame& frame, const WindowMinimum& windows) {
  if (windows.complete()) {
    frame.flags |= static_cast<std::uint8_t>(Flag::kACKV);
    frame.ack = windows.ack();
    frame.credit = windows.credit();
  } else {
    frame.flags &= static_cast<std::uint8_t>(~static_cast<unsigned>(Flag::kACKV));
  }
}

bool carries_data(PacketType type) {
  return type == PacketType::kPA || type == PacketType::kFA || type == PacketType::kPARAM;
}

}  // namespace

SwitchModel::Branch::Branch(const BranchShape& given) : shape(given), windows(given.members) {
  if (given.slots != 0) slots.emplace(given.members, given.slots, given.base);
}

std::optional<Seq> SwitchModel::Branch::furthest() const {
  const std::uint32_t mask = shape.slots - 1;
  if (shape.mode != Mode::kALLREDUCE) return acked ? std::optional(*acked + mask) : std::nullopt;
  return windows.complete() ? std::optional(windows.ack() + mask) : std::nullopt;
}

std::uint32_t SwitchModel::add_switch(SwitchTiming timing) {
  switches_.push_back({timing});
  return static_cast<std::uint32_t>(switches_.size() - 1);
}

std::uint32_t SwitchModel::add_branch(const BranchShape& shape) {
  branches_.emplace_back(shape);
  return static_cast<std::uint32_t>(branches_.size() - 1);
}

std::uint32_t SwitchModel::add_row(std::uint32_t branch, std::uint32_t wid, bool from_root) {
  rows_.push_back({branch, wid, from_root});
  return static_cast<std::uint32_t>(rows_.size() - 1);
}

void SwitchModel::fail(std::uint32_t which, bool down) {
  switches_[which].down = down;
  for (Branch& branch : branches_) {
    if (branch.shape.at != which) continue;
    std::vector<Outlet> kept = std::move(branch.down);
    const auto up = branch.up;
    branch = Branch(branch.shape);
    branch.down = std::move(kept);
    branch.up = up;
  }
}

void SwitchModel::on_frame(std::uint32_t row, Frame frame) {
  const Row from = rows_[row];
  Branch& branch = branches_[from.branch];
  Switch& at = switches_[branch.shape.at];
  if (at.down) return drop(Drop::kDown);
  const Picos now = fabric_.world.now();
  const Picos start = std::max(now, at.free_at);
  at.free_at = start + at.timing.frame;
  const Picos ready = start + at.timing.pipeline;
  const Mode mode = branch.shape.mode;
  if (from.from_root) return relay(branch, frame, ready);
  if (frame.type == PacketType::kPA && mode != Mode::kBCAST) {
    return aggregate(branch, from.wid, frame, ready);
  }
  if (frame.type == PacketType::kHB && mode != Mode::kREDUCE) {
    return merge(branch, from.wid, frame, ready);
  }
  drop(Drop::kWrongDirection);
}

void SwitchModel::relay(Branch& branch, Frame frame, Picos ready) {
  if (branch.shape.mode == Mode::kREDUCE) {
    if (frame.type != PacketType::kHB) return drop(Drop::kWrongDirection);
    frame.type = PacketType::kMH;
  }
  const bool acks = wire::has(frame.flags, Flag::kACKV) && frame.type != PacketType::kPARAM;
  if (acks && (!branch.acked || newer(frame.ack, *branch.acked))) branch.acked = frame.ack;
  to_members(branch, frame, ready);
}

void SwitchModel::aggregate(Branch& branch, std::uint32_t wid, Frame frame, Picos ready) {
  if (wire::has(frame.flags, Flag::kACKV)) branch.windows.hear(wid, frame.ack, frame.credit);
  if (!branch.slots) return drop(Drop::kWrongDirection);
  const auto outcome = branch.slots->add(frame.seq, wid, frame.sum, branch.furthest());
  branch.occupancy.note(branch.slots->occupied(), branch.slots->size(), fabric_.world.now());
  if (outcome == SlotTable::Outcome::kOld) return drop(Drop::kOldSeq);
  if (outcome == SlotTable::Outcome::kBeyond) return drop(Drop::kBeyondWindow);
  if (outcome == SlotTable::Outcome::kWaiting) return;
  frame.sum = branch.slots->sum(frame.seq);
  set_window(frame, branch.windows);
  if (branch.shape.mode == Mode::kLEAF) return send(branch, *branch.up, frame, ready);
  frame.type = PacketType::kFA;
  if (branch.shape.mode == Mode::kREDUCE) return send(branch, *branch.up, frame, ready);
  if (outcome == SlotTable::Outcome::kAgain) return send(branch, branch.down[wid], frame, ready);
  to_members(branch, frame, ready);
}

void SwitchModel::merge(Branch& branch, std::uint32_t wid, Frame frame, Picos ready) {
  const bool asks = wire::has(frame.flags, Flag::kRETX);
  branch.windows.hear(wid, frame.ack, frame.credit);
  if (branch.windows.complete()) {
    const bool moved = branch.windows.moved();
    if (!moved && wid != 0 && !asks) return;
  } else if (!asks || branch.shape.mode != Mode::kALLREDUCE) {
    return;
  }
  set_window(frame, branch.windows);
  if (branch.shape.mode == Mode::kLEAF) return send(branch, *branch.up, frame, ready);
  frame.type = PacketType::kMH;
  if (branch.shape.mode == Mode::kBCAST) return send(branch, *branch.up, frame, ready);
  to_members(branch, frame, ready);
}

void SwitchModel::hash(StateHash& state) const {
  for (const Switch& each : switches_) {
    state.free_at(each.free_at);
    state.number(each.down ? 1 : 0);
  }
  for (const Branch& branch : branches_) {
    const std::uint32_t stream = branch.shape.stream;
    if (branch.slots) branch.slots->hash(state, stream);
    branch.windows.hash(state, stream);
    state.number(branch.acked ? 1 : 0);
    if (branch.acked) state.seq(stream, *branch.acked);
    state.number(branch.occupancy.bin());
  }
}

void SwitchModel::settle() {
  for (Branch& branch : branches_) branch.occupancy.settle(fabric_.world.now());
}

SwitchCounts SwitchModel::counts() const {
  SwitchCounts out{drops_, {}};
  for (const Branch& branch : branches_) out.occupancy.push_back(branch.occupancy.time());
  return out;
}

void SwitchModel::repeat(const SwitchCounts& before, std::uint64_t times, Picos by,
                         const std::vector<std::uint32_t>& frames) {
  for (std::size_t i = 0; i < drops_.size(); ++i) {
    drops_[i] += times * (drops_[i] - before.drops[i]);
  }
  for (Switch& each : switches_) each.free_at += by;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    Branch& branch = branches_[i];
    const std::uint32_t further = frames[branch.shape.stream];
    branch.occupancy.repeat(before.occupancy[i], times, by);
    if (further == 0) continue;
    if (branch.slots) branch.slots->skip(further);
    branch.windows.skip(further);
    if (branch.acked) *branch.acked += further;
  }
}

void SwitchModel::send(const Branch& branch, const Outlet& out, const Frame& frame, Picos ready) {
  const std::size_t bytes = carries_data(frame.type) ? branch.shape.data_bytes : kHeaderFrame;
  fabric_.send(out, frame, bytes, ready);
}

void SwitchModel::to_members(const Branch& branch, const Frame& frame, Picos ready) {
  for (const Outlet& out : branch.down) send(branch, out, frame, ready);
}

}  // namespace catchment::performance
