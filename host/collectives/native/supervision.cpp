// What a rank does while no vector moves: it asks the other ranks, reports the stall, and fails the
// operation when waiting is over.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine.hpp"

namespace catchment::host {
namespace {

// A rank that waits looks again so often at how long it has waited.
constexpr Nanos kLook = 30 * kMillisecond;
// A pause between two looks that is longer than this is the process's own, not the network's.
constexpr Nanos kPause = kSecond / 2;
// What was sent before all its senders had gone comes from the switch within this time, if at all.
constexpr Nanos kLastHelp = 3 * kSecond;
// So many frames in a row, with nothing received for a second, come from no forger or faulty link.
constexpr std::uint64_t kProof = 8;

std::string seconds(Nanos duration) {
  const Nanos hundredths = duration / (kSecond / 100);
  const std::string text = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (text.size() < 2 ? "0" + text : text) + " s";
}

}  // namespace

void Engine::supervise(Nanos now) {
  stats_.rejects[static_cast<std::size_t>(Reject::kSource)].set(port_->foreign());
  stats_.rejects[static_cast<std::size_t>(Reject::kTag)].set(port_->forged());
  stats_.socket_errors.set(port_->errors());
  if (failure_ || pending_.empty()) return;
  if (now - supervised_at_ > kPause) {
    // What has come since the pause is not in the future.
    progressed_at_ = std::min(now, progressed_at_ + (now - supervised_at_));
    absent_since_ = kNever;
    roll_call_.on_heard();  // or not: this process could not have heard it
  }
  supervised_at_ = now;
  if (now - progressed_at_ >= silence_.call_after(config_.call_after)) roll_call_.on_waiting(now);
  if (auto failure = abandoned(now)) {
    fail(std::move(*failure), now);
    return;
  }
  if (auto failure = deserted(now)) {
    fail(std::move(*failure), now);
    return;
  }
  if (served_before(now)) {
    fail({.kind = "used",
          .message =
              "an earlier run has used this job: what the switch acknowledges is not this run's",
          .hint =
              "without a controller a job serves one run: `catchment job renew` it, and give its "
              "members what `catchment job show` says then",
          .peers = 0,
          .seq = consumer_.ack(),
          .fatal = true},
         now);
    return;
  }
  for (const auto& operation : pending_) {
    const Nanos timeout = operation->call.timeout != 0 ? operation->call.timeout : config_.timeout;
    const Nanos since = std::max(progressed_at_, operation->submitted);
    if (now - since < timeout) continue;
    const bool waits_for_key = is_spent() && consumer_.ack() == window_.next();
    fail(waits_for_key ? spent() : missing(since, timeout), now);
    return;
  }
}

std::optional<CollectiveFailure> Engine::abandoned(Nanos now) {
  const bool gone = port_->absent();
  absent_since_ = gone ? std::min(absent_since_, now) : kNever;
  if (config_.absent == 0) return std::nullopt;
  const Nanos silence = roll_call_.unanswered_for(now);
  if (gone) {
    if (now - absent_since_ < config_.absent) return std::nullopt;
  } else {
    // A rank that is late is no reason: this rank's own calls come back as long as the switch
    // lives.
    if (port_->tells_absence() || silence < config_.absent) return std::nullopt;
  }
  CollectiveFailure failure{.kind = "unreachable",
                            .message = "the switch " + config_.peer,
                            .hint = {},
                            .peers = 0,
                            .seq = consumer_.ack(),
                            .fatal = true};
  if (gone) {
    failure.message += " has gone";
    failure.hint = port_->absence();
    return failure;
  }
  failure.message += heard_ == 0 ? " was never heard" : " is silent";
  failure.message += ", and answers nothing for " + seconds(silence);
  failure.hint = question();
  return failure;
}

std::optional<CollectiveFailure> Engine::deserted(Nanos now) const {
  if (roll_call_.left() == 0) return std::nullopt;
  // A rank that has gone cannot help with what it has sent, either, but the switch may have it.
  const bool all = now - progressed_at_ >= kLastHelp;
  const std::uint64_t peers = all ? roll_call_.left() : roll_call_.left_before(consumer_.ack());
  if (peers == 0) return std::nullopt;
  return CollectiveFailure{
      .kind = "missing",
      .message = ranks_in(peers) + " has left: its communicator is closed",
      .hint = "has it called fewer operations, or ended with an error of its own?",
      .peers = peers,
      .seq = consumer_.ack(),
      .fatal = true};
}

CollectiveFailure Engine::spent() const {
  if (keys_follow()) {
    return {.kind = "spent",
            .message = "the keys of the job's frames serve for no number from " +
                       std::to_string(config_.keys->end()) + " on, and the next one has not come",
            .hint =
                "the controller gives it once every member of the job has asked: is it up, and "
                "what does `catchment job show` say? Members log what it answers",
            .peers = 0,
            .seq = consumer_.ack(),
            .fatal = true};
  }
  return {
      .kind = "spent",
      .message = "the key of the job's frames does not serve for more than " +
                 std::to_string(config_.stream.key_frames) + " vectors",
      .hint = "`catchment job renew` gives the job new keys; with a controller, joining again does",
      .peers = 0,
      .seq = consumer_.ack(),
      .fatal = true};
}

Nanos Engine::away_for(Nanos now) const {
  if (port_ == nullptr || pending_.empty()) return 0;
  if (!port_->tells_absence()) return roll_call_.unanswered_for(now);
  return port_->absent() ? std::max<Nanos>(now - absent_since_, 0) : 0;
}

// What to ask about a switch that is silent.
std::string Engine::question() const {
  const int error = port_->last_error();
  if (error == 0) {
    return "is the switch " + config_.peer +
           " running, and does it know this job's gen on this port?";
  }
  return std::string("the network says: ") + std::strerror(error) + "; is the switch " +
         config_.peer + " running?";
}

bool Engine::served_before(Nanos now) const {
  return impossible_ >= kProof && consumer_.ack() == config_.stream.base &&
         now - progressed_at_ >= kSecond;
}

CollectiveFailure Engine::missing(Nanos since, Nanos timeout) const {
  CollectiveFailure failure;
  failure.fatal = true;
  failure.seq = consumer_.ack();
  failure.message = "no progress within the timeout of " + seconds(timeout);
  const std::optional<std::uint64_t> gone = roll_call_.missing(since, since + timeout);
  if (heard_ == 0 || !gone) {
    failure.kind = "unreachable";
    failure.message +=
        heard_ == 0 ? ", and nothing was ever heard from the switch" : ", and the switch is silent";
    failure.hint = question();
    return failure;
  }
  failure.kind = "missing";
  const std::uint64_t behind = roll_call_.behind(since, consumer_.ack());
  // A rank that has not called the operation is heard, unless it has gone after a last word.
  const std::uint64_t silent = roll_call_.to_name(*gone, since, consumer_.ack());
  failure.peers = silent != 0 ? silent : behind;
  if (silent != 0) {
    failure.message += ": " + ranks_in(silent) + " cannot be heard";
    failure.hint = "has its process ended, or its link failed?";
  } else if (behind != 0) {
    failure.message += ": " + ranks_in(behind) + " is there, but has not called the operation";
    failure.hint = "do all ranks call the same operations, or is one slower than the timeout?";
  } else {
    failure.message += ", although all ranks can be heard";
    failure.hint = "are more than a few frames in a hundred lost?";
  }
  return failure;
}

void Engine::fail(CollectiveFailure failure, Nanos now) {
  if (failure_) return;
  failure_ = std::move(failure);
  schedule_.clear();
  for (const auto& operation : std::exchange(pending_, {})) {
    operation->outcome.failure = failure_;
    operation->outcome.latency = now - operation->submitted;
    operation->done.store(true, std::memory_order_release);
  }
}

Nanos Engine::deadline() const {
  if (failure_) return kNever;
  const bool lossless = port_ != nullptr && port_->lossless();
  Nanos soonest = lossless ? repeat_all_at() : std::min(resend_at(), silence_.deadline());
  // What the port does not take now leaves when it has room.
  if (!blocked_) soonest = std::min({soonest, heartbeat_.deadline(), roll_call_.deadline()});
  if (!pending_.empty()) {
    const Nanos call = progressed_at_ + silence_.call_after(config_.call_after);
    soonest = std::min(soonest, call > supervised_at_ ? call : supervised_at_ + kLook);
  }
  return soonest;
}

}  // namespace catchment::host
