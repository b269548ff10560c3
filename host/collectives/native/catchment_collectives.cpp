#include "catchment_collectives.h"

#include <algorithm>
#include <catchment/shm/fork_guard.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "catchment/common/clock.hpp"
#include "gathered_sums.hpp"
#include "group.hpp"
#include "shm_port.hpp"
#include "udp_port.hpp"

using namespace catchment;
using catchment::shm::ForkGuard;
using namespace catchment::host;

struct catchment_group {
  std::shared_ptr<Group> group;
  std::uint16_t port = 0;
  ForkGuard guard{};
};

struct catchment_work {
  std::shared_ptr<Group> group;
  std::shared_ptr<Operation> operation;
  ForkGuard guard{};
};

namespace {

constexpr int kAttachPieceMs = 50;

CollectiveFailure forked() {
  return {.kind = "forked",
          .message = "the communicator was made before fork()",
          .hint = "make one in the child, after fork()",
          .peers = 0,
          .seq = {},
          .fatal = true};
}

// One that ends before it begins.
std::shared_ptr<Operation> refused(CollectiveFailure failure) {
  auto operation = std::make_shared<Operation>(Call{});
  operation->outcome.failure = std::move(failure);
  operation->done.store(true);
  return operation;
}

std::unique_ptr<Port> open_shm(const catchment_group_config& config, const UdpAddress& local,
                               const UdpAddress& peer) {
  const Nanos until = monotonic_now() + config.attach_ns;
  while (true) {
    try {
      return std::make_unique<ShmPort>(config.shm_path, local, peer, kAttachPieceMs);
    } catch (const AttachError& error) {
      if (error.final() || monotonic_now() >= until) throw;
    }
  }
}

std::unique_ptr<catchment_group> open_group(const catchment_group_config& config) {
  EngineConfig engine;
  const UdpAddress local{config.local_ip, config.local_port};
  const UdpAddress peer{config.switch_ip, config.switch_port};
  engine.stream = {.name = "sums",
                   .gen = static_cast<std::uint16_t>(config.gen),
                   .workers = config.ranks,
                   .slots = config.slots,
                   .window = config.window == 0 ? config.slots : config.window,
                   .base = config.base_seq,
                   .lanes = config.lanes};
  engine.rank = config.rank;
  engine.peer =
      config.shm_path != nullptr ? config.shm_path : peer.host + ":" + std::to_string(peer.port);
  engine.timeout = config.timeout_ns;
  engine.absent = config.absent_ns;
  auto result = std::make_unique<catchment_group>();
  std::unique_ptr<Port> port;
  if (config.shm_path != nullptr) {
    port = open_shm(config, local, peer);
    result->port = local.port;
  } else {
    auto udp = std::make_unique<UdpPort>(local, peer, longest_frame(engine), engine.stream.window);
    result->port = udp->local().port;
    port = std::move(udp);
  }
  result->group = std::make_shared<Group>(std::move(engine), std::move(port), config.spin_ns);
  return result;
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

// The first thing that is wrong with a call; a caller that came by Python has checked it before.
const char* wrong_with(const catchment_call& call, const Layout& layout) {
  if (call.kind < CATCHMENT_ALL_REDUCE || call.kind > CATCHMENT_REFUSED) return "no such kind";
  if (call.reduction < CATCHMENT_SUM || call.reduction > CATCHMENT_MAX) return "no such reduction";
  if (call.type < CATCHMENT_BYTES || call.type > CATCHMENT_BF16) return "no such type";
  if (call.scaling < CATCHMENT_NONE || call.scaling > CATCHMENT_DELAYED) return "no such scaling";
  if (call.exponent < kLeastExponent || call.exponent > kMostExponent) {
    return "the exponent is not in -128..127";
  }
  if (call.root < 0 || call.root >= static_cast<std::int32_t>(layout.ranks)) {
    return "there is no such root";
  }
  if (call.elements > Signature::kMostElements) return "too many elements";
  const bool reduces = call.kind == CATCHMENT_ALL_REDUCE || call.kind == CATCHMENT_REDUCE ||
                       call.kind == CATCHMENT_REDUCE_SCATTER;
  if (reduces == (call.type == CATCHMENT_BYTES)) return "the type does not fit the kind";
  const bool floats = call.type >= CATCHMENT_FP32;
  if (call.reduction == CATCHMENT_MEAN && !floats) return "a mean is of floats";
  if ((floats && call.reduction != CATCHMENT_MAX) != (call.scaling != CATCHMENT_NONE)) {
    return "sums and means of floats, and nothing else, are scaled";
  }
  if (call.kind == CATCHMENT_REDUCE_SCATTER && call.elements % layout.ranks != 0) {
    return "the elements are no multiple of the ranks";
  }
  const bool moves = call.kind != CATCHMENT_BARRIER && call.kind < CATCHMENT_BESIDE;
  const bool data = moves && call.elements != 0;
  if (data && (call.source == nullptr || call.target == nullptr)) return "an array is missing";
  return nullptr;
}

}  // namespace

int catchment_collectives_abi(void) { return CATCHMENT_COLLECTIVES_ABI; }

catchment_group* catchment_group_open(const catchment_group_config* config, char* error,
                                      std::size_t error_bytes) {
  std::string why;
  try {
    if (signature_lanes(config->lanes, config->ranks) < kLeastSignatureLanes) {
      why = std::to_string(config->lanes) + " lanes are too few for " +
            std::to_string(config->ranks) + " ranks: two for each are needed";
    } else {
      return open_group(*config).release();
    }
  } catch (const std::system_error& system) {
    why = system.code().value() == EMSGSIZE ? "a frame does not fit the path: raise the MTU"
                                            : system.what();
  } catch (const std::exception& other) {
    why = other.what();
  }
  if (error != nullptr && error_bytes != 0) {
    const std::size_t length = std::min(why.size(), error_bytes - 1);
    std::memcpy(error, why.data(), length);
    error[length] = '\0';
  }
  return nullptr;
}

int catchment_group_forked(const catchment_group* group) { return group->guard.in_child() ? 1 : 0; }

std::uint16_t catchment_group_port(const catchment_group* group) { return group->port; }

catchment_work* catchment_group_start(catchment_group* group, const catchment_call* call) {
  auto work = std::make_unique<catchment_work>();
  work->group = group->group;
  if (group->guard.in_child()) {
    work->operation = refused(forked());
    return work.release();
  }
  if (const char* const wrong = wrong_with(*call, group->group->layout())) {
    work->operation = refused(
        {.kind = "argument", .message = wrong, .hint = "", .peers = 0, .seq = {}, .fatal = false});
    return work.release();
  }
  Call asked;
  asked.signature = {.kind = static_cast<Kind>(call->kind),
                     .reduction = static_cast<Reduction>(call->reduction),
                     .type = static_cast<catchment::wire::DataType>(call->type),
                     .scaling = static_cast<ScalingMode>(call->scaling),
                     .root = static_cast<std::uint8_t>(call->root),
                     .exponent = static_cast<std::int8_t>(call->exponent),
                     .cancelled = false,
                     .elements = call->elements,
                     .tag = call->tag};
  // Words need no scale.
  const bool few = call->elements * item_bytes(asked.signature.type) <= kGatheredBytes;
  if (negotiates(asked.signature.scaling) && few) {
    asked.signature.scaling = ScalingMode::kNone;
    asked.signature.exponent = 0;
  }
  asked.source = static_cast<const std::uint8_t*>(call->source);
  asked.target = static_cast<std::uint8_t*>(call->target);
  asked.priority = call->priority;
  asked.timeout = call->timeout_ns;
  work->operation = group->group->start(std::move(asked));
  return work.release();
}

void catchment_group_failure(catchment_group* group, catchment_result* result) {
  thread_local std::optional<CollectiveFailure> kept;
  *result = {};
  kept = group->guard.in_child() ? forked() : group->group->failure();
  write_failure(kept, *result);
}

void catchment_group_get_stats(const catchment_group* group, catchment_group_stats* result) {
  const Stats& stats = group->group->stats();
  *result = {};
  result->frames_sent = stats.frames_sent.get();
  result->frames_received = stats.frames_received.get();
  result->bytes_sent = stats.bytes_sent.get();
  result->bytes_received = stats.bytes_received.get();
  result->retransmissions = stats.retransmissions.get();
  result->timeouts = stats.timeouts.get();
  result->heartbeats_sent = stats.heartbeats_sent.get();
  result->heartbeats_received = stats.heartbeats_received.get();
  result->frames_asked_for = stats.frames_asked_for.get();
  result->saturated = stats.saturated.get();
  result->nonfinite = stats.nonfinite.get();
  result->socket_errors = stats.socket_errors.get();
  for (const Counter& counter : stats.rejects) result->rejected += counter.get();
  result->in_flight = stats.in_flight.get();
  result->held = stats.held.get();
  result->operations = stats.pull_latency.count.get();
  result->round_trip_ns = stats.round_trip.get();
  result->retransmit_timeout_ns = stats.retransmit_timeout.get();
  result->exponents_guessed = stats.exponents_guessed.get();
  result->exponents_missed = stats.exponents_missed.get();
}

void catchment_group_close(catchment_group* group, std::int64_t linger_ns) {
  if (!group->guard.in_child()) group->group->close(linger_ns);
}

void catchment_group_free(catchment_group* group) {
  if (group->guard.in_child()) return;
  const std::unique_ptr<catchment_group> owned(group);
  owned->group->close(0);
}

int catchment_work_wait(catchment_work* work, std::int64_t limit_ns) {
  return work->guard.in_child() || work->group->wait(*work->operation, limit_ns) ? 1 : 0;
}

int catchment_work_done(const catchment_work* work) {
  return work->guard.in_child() || work->operation->done.load(std::memory_order_acquire) ? 1 : 0;
}

int catchment_work_cancel(catchment_work* work) {
  return !work->guard.in_child() && work->group->cancel(*work->operation) ? 1 : 0;
}

void catchment_work_result(const catchment_work* work, catchment_result* result) {
  *result = {};
  if (catchment_work_done(work) == 0) return;
  result->done = 1;
  if (!work->operation->done.load(std::memory_order_acquire)) {
    static const std::optional<CollectiveFailure> left = forked();
    write_failure(left, *result);
    return;
  }
  const CollectiveOutcome& outcome = work->operation->outcome;
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
