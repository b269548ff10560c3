#include "catchment_collectives.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "asked_call.hpp"
#include "handles.hpp"

using namespace catchment::host;

namespace {

CollectiveFailure forked() {
  return {.kind = "forked",
          .message = "the communicator was made before fork()",
          .hint = "make one in the child, after fork()",
          .peers = 0,
          .seq = {},
          .fatal = true};
}

void write_failure(const std::optional<CollectiveFailure>& failure, catchment_result& result) {
  if (!failure) return;
  result.failed = 1;
  result.fatal = failure->fatal ? 1 : 0;
  result.peers = failure->peers;
  result.has_seq = failure->seq ? 1 : 0;
  result.seq = failure->seq.value_or(0);
  result.kind = failure->kind.c_str();
  result.message = failure->message.c_str();
  result.hint = failure->hint.c_str();
}

}  // namespace

int catchment_collectives_abi(void) { return CATCHMENT_COLLECTIVES_ABI; }

catchment_group* catchment_group_open(const catchment_group_config* config, char* error,
                                      std::size_t error_bytes) {
  const catchment_rail rail{
      .name = "", .config = *config, .bytes_per_ms = 0, .control = nullptr, .spares = nullptr};
  return catchment_rails_open(&rail, 1, CATCHMENT_RAILS_SINGLE, error, error_bytes);
}

int catchment_group_forked(const catchment_group* group) { return group->guard.in_child() ? 1 : 0; }

std::uint16_t catchment_group_port(const catchment_group* group) { return group->port; }

std::uint64_t catchment_group_key_due(catchment_group* group) {
  if (group->guard.in_child()) return 0;
  return group->rails->rails().front().group->key_due();
}

int catchment_group_take_key(catchment_group* group, std::uint64_t term, const std::uint8_t* key) {
  if (group->guard.in_child()) return 0;
  const TagKey halves =
      tag_key(std::span<const std::uint8_t, CATCHMENT_KEY_BYTES>(key, CATCHMENT_KEY_BYTES));
  return group->rails->rails().front().group->take_key(term, halves) ? 1 : 0;
}

catchment_work* catchment_group_start(catchment_group* group, const catchment_call* call) {
  auto work = std::make_unique<catchment_work>();
  work->rails = group->rails;
  if (group->guard.in_child()) {
    work->refusal = forked();
    return work.release();
  }
  if (const char* const wrong = wrong_with(*call, group->rails->layout(), group->packed)) {
    work->refusal = {
        {.kind = "argument", .message = wrong, .hint = "", .peers = 0, .seq = {}, .fatal = false}};
    return work.release();
  }
  work->operation = group->rails->start(asked_by(*call));
  return work.release();
}

void catchment_group_failure(catchment_group* group, catchment_result* result) {
  thread_local std::optional<CollectiveFailure> kept;
  *result = {};
  kept = group->guard.in_child() ? forked() : group->rails->failure();
  write_failure(kept, *result);
}

void catchment_group_get_stats(const catchment_group* group, catchment_group_stats* result) {
  *result = {};
  const bool in_child = group->guard.in_child();
  for (const rails::Rail& rail : group->rails->rails()) {
    const Stats& stats = rail.group->stats();
    result->frames_sent += stats.frames_sent.get();
    result->frames_received += stats.frames_received.get();
    result->bytes_sent += stats.bytes_sent.get();
    result->bytes_received += stats.bytes_received.get();
    result->retransmissions += stats.retransmissions.get();
    result->timeouts += stats.timeouts.get();
    result->heartbeats_sent += stats.heartbeats_sent.get();
    result->heartbeats_received += stats.heartbeats_received.get();
    result->frames_asked_for += stats.frames_asked_for.get();
    result->saturated += stats.saturated.get();
    result->nonfinite += stats.nonfinite.get();
    result->socket_errors += stats.socket_errors.get();
    for (const Counter& counter : stats.rejects) result->rejected += counter.get();
    result->forged += stats.rejects[static_cast<std::size_t>(Reject::kTag)].get();
    result->in_flight += stats.in_flight.get();
    result->held += stats.held.get();
    // A child has no attachment, and who had the turn at fork() never gives it back there.
    if (!in_child) result->in_callers += rail.group->inside() ? 1 : 0;
    result->operations += stats.pull_latency.count.get();
    result->round_trip_ns = std::max(result->round_trip_ns, stats.round_trip.get());
    result->retransmit_timeout_ns =
        std::max(result->retransmit_timeout_ns, stats.retransmit_timeout.get());
    result->exponents_guessed += stats.exponents_guessed.get();
    result->exponents_missed += stats.exponents_missed.get();
  }
}

void catchment_group_close(catchment_group* group, std::int64_t linger_ns) {
  if (!group->guard.in_child()) group->rails->close(linger_ns);
}

void catchment_group_free(catchment_group* group) {
  if (group->guard.in_child()) return;
  const std::unique_ptr<catchment_group> owned(group);
  owned->rails->close(0);
}

int catchment_work_wait(catchment_work* work, std::int64_t limit_ns) {
  if (!work->guard.in_child() && !work->refusal) work->rails->wait(*work->operation, limit_ns);
  return catchment_work_done(work);
}

int catchment_work_done(const catchment_work* work) {
  if (work->guard.in_child() || work->refusal) return CATCHMENT_FAILED;
  if (!work->rails->done(*work->operation)) return CATCHMENT_RUNS;
  return work->rails->failed(*work->operation) ? CATCHMENT_FAILED : CATCHMENT_SUCCEEDED;
}

int catchment_work_cancel(catchment_work* work) {
  if (work->guard.in_child() || work->refusal) return 0;
  return work->rails->cancel(*work->operation) ? 1 : 0;
}

void catchment_work_result(const catchment_work* work, catchment_result* result) {
  *result = {};
  if (catchment_work_done(work) == CATCHMENT_RUNS) return;
  result->done = 1;
  if (work->refusal) {
    write_failure(work->refusal, *result);
    return;
  }
  if (!work->rails->done(*work->operation)) {
    static const std::optional<CollectiveFailure> left = forked();
    write_failure(left, *result);
    return;
  }
  const std::scoped_lock lock(work->merging);
  if (!work->outcome) work->outcome = work->rails->outcome(*work->operation);
  const CollectiveOutcome& outcome = *work->outcome;
  result->exponent = outcome.exponent;
  result->any_saturated = outcome.any_saturated ? 1 : 0;
  result->vectors = outcome.vectors;
  result->retransmissions = outcome.retransmissions;
  result->saturated = outcome.saturated;
  result->nonfinite = outcome.nonfinite;
  result->latency_ns = outcome.latency;
  write_failure(outcome.failure, *result);
}

void catchment_work_free(catchment_work* work) {
  if (work->guard.in_child()) return;
  const std::unique_ptr<catchment_work> owned(work);
}
