#include "roll_call.hpp"

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

void RollCall::on_call(std::uint32_t rank, Seq next, Nanos now) {
  if (rank >= seen_.size()) return;
  seen_[rank] = {now, next};
  if (rank != rank_) wanted_ = true;
}

void RollCall::on_waiting(Nanos now) {
  if (now >= said_at_ + kInterval) wanted_ = true;
}

void RollCall::on_said(Nanos now) {
  wanted_ = false;
  if (now - said_at_ > kInRow) unanswered_ = 0;
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
