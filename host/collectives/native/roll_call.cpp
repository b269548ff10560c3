#include "roll_call.hpp"

#include <algorithm>

#include "wire.hpp"

namespace catchment::host {

std::string ranks_in(std::uint64_t bits) {
  std::string text;
  for (std::size_t rank = 0; rank < wire::kMaxWorkers; ++rank) {
    if ((bits >> rank & 1U) == 0) continue;
    text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
  }
  return text;
}

std::int8_t RollCall::word(std::uint32_t rank, bool leaves) {
  const int own = static_cast<int>(rank);
  return static_cast<std::int8_t>(leaves ? -1 - own : own);
}

void RollCall::on_call(std::int8_t word, Seq next, Nanos now) {
  const bool leaves = word < 0;
  const auto rank = static_cast<std::uint32_t>(leaves ? -1 - word : word);
  if (rank >= seen_.size() || (left_ >> rank & 1U) != 0) return;
  seen_[rank] = {now, next};
  if (rank == rank_) {
    said_farewell_ = leaves;
  } else if (leaves) {
    left_ |= std::uint64_t{1} << rank;
  } else {
    wanted_ = true;
  }
}

std::uint64_t RollCall::left_before(Seq seq) const {
  std::uint64_t bits = 0;
  for (std::size_t rank = 0; rank < seen_.size(); ++rank) {
    if ((left_ >> rank & 1U) != 0 && !newer(seen_[rank].next, seq))
      bits |= std::uint64_t{1} << rank;
  }
  return bits;
}

void RollCall::on_waiting(Nanos now) {
  if (now >= said_at_ + interval_) wanted_ = true;
}

void RollCall::on_said(Nanos now) {
  wanted_ = false;
  if (now - said_at_ > kInRow * interval_) unanswered_ = 0;
  if (unanswered_++ == 0) unanswered_since_ = now;
  said_at_ = now;
}

Nanos RollCall::unanswered_for(Nanos now) const {
  return unanswered_ < kProof ? 0 : now - unanswered_since_;
}

std::uint64_t RollCall::silent(Nanos since) const {
  std::uint64_t bits = 0;
  for (std::size_t rank = 0; rank < seen_.size(); ++rank) {
    if (rank != rank_ && seen_[rank].at < since) bits |= std::uint64_t{1} << rank;
  }
  return bits;
}

std::optional<std::uint64_t> RollCall::missing(Nanos since, Nanos now) const {
  const Nanos enough = (now - since) / kQuarter;
  if (carried(since) < enough) return std::nullopt;
  // Up to then the switch has carried the words of whoever said any.
  const Nanos judged = seen_[rank_].at;
  const std::uint64_t never = silent(since);
  return never != 0 ? never : silent(judged - enough);
}

std::uint64_t RollCall::to_name(std::uint64_t missing, Nanos since, Seq seq) const {
  const std::uint64_t late = behind(since, seq);
  return late == 0 ? missing : missing & (late | silent(since));
}

Nanos RollCall::all_heard_at() const { return std::ranges::min(seen_, {}, &Seen::at).at; }

std::uint64_t RollCall::behind(Nanos since, Seq seq) const {
  std::uint64_t bits = 0;
  for (std::size_t rank = 0; rank < seen_.size(); ++rank) {
    const Seen& seen = seen_[rank];
    if (rank != rank_ && seen.at >= since && !newer(seen.next, seq))
      bits |= std::uint64_t{1} << rank;
  }
  return bits;
}

}  // namespace catchment::host
