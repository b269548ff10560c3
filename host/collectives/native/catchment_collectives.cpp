#include "catchment_collectives.h"

#include <algorithm>
#include <catchment/shm/fork_guard.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "catchment/common/clock.hpp"
#include "gathered_sums.hpp"
#include "packed_lanes.hpp"
#include "rails/rail_set.hpp"
#include "ring/ring_port.hpp"
#include "udp_port.hpp"

using namespace catchment;
using catchment::shm::ForkGuard;
using namespace catchment::host;

struct catchment_group {
  std::shared_ptr<rails::RailSet> rails;
  std::uint16_t port = 0;
  bool packed = false;  // its streams may have packed lanes
  ForkGuard guard{};
};

struct catchment_work {
  std::shared_ptr<rails::RailSet> rails;
  std::shared_ptr<rails::RailOperation> operation;  // none where it was refused
  std::optional<CollectiveFailure> refusal{};
  mutable std::mutex merging{};
  mutable std::optional<CollectiveOutcome> outcome{};  // once a caller has asked for the result
  ForkGuard guard{};
};

namespace {

CollectiveFailure forked() {
  return {.kind = "forked",
          .message = "the communicator was made before fork()",
          .hint = "make one in the child, after fork()",
          .peers = 0,
          .seq = {},
          .fatal = true};
}

UdpAddress local_of(const catchment_group_config& config) {
  return {config.local_ip, config.local_port};
}

UdpAddress peer_of(const catchment_group_config& config) {
  return {config.switch_ip, config.switch_port};
}

EngineConfig engine_of(const catchment_group_config& config) {
  EngineConfig engine;
  const UdpAddress peer = peer_of(config);
  engine.stream = {.name = "sums",
                   .gen = static_cast<std::uint16_t>(config.gen),
                   .workers = config.ranks,
                   .slots = config.slots,
                   .window = config.window == 0 ? config.slots : config.window,
                   .base = config.base_seq,
                   .lanes = config.lanes,
                   .packed = config.packed != 0};
  engine.rank = config.rank;
  engine.peer = "at " + (config.shm_path != nullptr ? std::string(config.shm_path)
                                                    : peer.host + ":" + std::to_string(peer.port));
  if (config.switch_name != nullptr) engine.peer = config.switch_name + (" " + engine.peer);
  engine.timeout = config.timeout_ns;
  engine.absent = config.absent_ns;
  return engine;
}

// A stream on which a council meets: it asks at once, and waits as long as it takes.
EngineConfig control_of(const catchment_group_config& config, std::shared_ptr<rails::Bell> bell) {
  constexpr Nanos kCallAfter = 300 * kMicrosecond;
  EngineConfig engine = engine_of(config);
  engine.absent = 0;
  engine.call_after = kCallAfter;
  engine.hailed = [bell = std::move(bell)] { bell->ring(); };
  return engine;
}

// A port of the stream's own, and the number that it is bound to.
std::pair<std::unique_ptr<Port>, std::uint16_t> own_port(const catchment_group_config& config,
                                                         const EngineConfig& engine) {
  if (config.way == CATCHMENT_SWITCH) {
    auto port = std::make_unique<UdpPort>(local_of(config), peer_of(config), longest_frame(engine),
                                          engine.stream.window);
    const std::uint16_t bound = port->local().port;
    return {std::move(port), bound};
  }
  const auto transport =
      config.way == CATCHMENT_MPTCP_RING ? ring::Transport::kMptcp : ring::Transport::kTcp;
  auto port = std::make_unique<ring::RingPort>(local_of(config), peer_of(config), transport,
                                               ring::Greeting{.gen = config.gen,
                                                              .rank = config.rank,
                                                              .ranks = config.ranks,
                                                              .slots = config.slots,
                                                              .lanes = config.lanes});
  const std::uint16_t bound = port->port();
  return {std::move(port), bound};
}

// How the stream of rail `own` goes over each rail.
std::vector<Way> ways_of(const catchment_rail& rail, std::size_t count, std::size_t own) {
  std::vector<Way> ways;
  for (std::size_t at = 0; at < count; ++at) {
    const catchment_group_config& config = at == own ? rail.config : rail.spares[at];
    Way way{.gen = static_cast<std::uint16_t>(config.gen),
            .path = config.shm_path == nullptr ? "" : config.shm_path,
            .local = local_of(config),
            .peer = peer_of(config),
            .port = nullptr};
    if (way.path.empty() && at != own) way.port = own_port(config, engine_of(config)).first;
    ways.push_back(std::move(way));
  }
  return ways;
}

// A group with this engine, and the port that it is bound to; `waits` for a switch of this machine.
std::pair<std::shared_ptr<Group>, std::uint16_t> open_rail(EngineConfig engine,
                                                           const catchment_group_config& config,
                                                           bool waits) {
  const UdpAddress local = local_of(config);
  const UdpAddress peer = peer_of(config);
  if (config.shm_path != nullptr) {
    const auto attach = waits ? std::optional(config.attach_ns) : std::nullopt;
    auto group = std::make_shared<Group>(std::move(engine), config.shm_path, local, peer, attach,
                                         config.spin_ns);
    return {std::move(group), local.port};
  }
  auto [port, bound] = own_port(config, engine);
  return {std::make_shared<Group>(std::move(engine), std::move(port), config.spin_ns), bound};
}

// What must be equal on all rails.
std::string shape_of(const catchment_rail& rail) {
  const catchment_group_config& config = rail.config;
  return std::string(rail.name) + " has rank " + std::to_string(config.rank) + " of " +
         std::to_string(config.ranks) + ", " + std::to_string(config.lanes) +
         (config.packed != 0 ? " packed" : "") + " lanes and " + std::to_string(config.slots) +
         " slots";
}

// What is wrong with the rails as they are given; empty if nothing is.
std::string wrong_with(std::span<const catchment_rail> rails, std::int32_t policy) {
  if (rails.empty() || rails.size() > CATCHMENT_MOST_RAILS) {
    return std::to_string(rails.size()) + " rails: give 1.." + std::to_string(CATCHMENT_MOST_RAILS);
  }
  if (policy < CATCHMENT_RAILS_WATERFILL || policy > CATCHMENT_RAILS_SINGLE) {
    return "there is no policy " + std::to_string(policy);
  }
  const catchment_group_config& first = rails.front().config;
  for (const catchment_rail& rail : rails) {
    const catchment_group_config& config = rail.config;
    if (signature_lanes(config.lanes, config.ranks) < kLeastSignatureLanes) {
      return std::to_string(config.lanes) + " lanes are too few for " +
             std::to_string(config.ranks) + " ranks: two for each are needed";
    }
    if (config.ranks != first.ranks || config.rank != first.rank || config.lanes != first.lanes ||
        config.slots != first.slots || config.packed != first.packed) {
      return "rail " + shape_of(rail) + ", rail " + shape_of(rails.front());
    }
  }
  const std::uint32_t in_vector = first.lanes * (first.packed != 0 ? kHalvesInLane : 1);
  if (rails.size() > 1 && rails::kGranule % in_vector != 0) {
    return std::to_string(in_vector) +
           " elements in a vector: several rails need a power of two up to " +
           std::to_string(rails::kGranule);
  }
  return {};
}

// Waits for the switches of this machine: for one rail's as long as a communicator does, for the
// others' a little longer, since a rail that is late has to last through a probation.
void await_switches(std::span<const rails::Rail> opened, std::span<const catchment_rail> asked) {
  constexpr Nanos kGrace = kSecond;
  constexpr auto kLook = std::chrono::milliseconds(2);
  Nanos until = monotonic_now() + asked.front().config.attach_ns;
  bool any = false;
  while (true) {
    std::string absent;
    std::size_t there = 0;
    for (std::size_t at = 0; at < asked.size(); ++at) {
      const char* const path = asked[at].config.shm_path;
      if (path == nullptr || !opened[at].control->absent()) {
        ++there;
      } else {
        absent +=
            (absent.empty() ? "" : ", ") + std::string(path) + " (rail " + opened[at].name + ")";
      }
    }
    const Nanos now = monotonic_now();
    if (there != 0 && !std::exchange(any, true)) until = std::min(until, now + kGrace);
    if (there == asked.size() || (any && now >= until)) return;
    if (now >= until) throw AttachError("no switch to attach to at " + absent, true);
    std::this_thread::sleep_for(kLook);
  }
}

std::unique_ptr<catchment_group> open_rails(std::span<const catchment_rail> asked,
                                            std::int32_t policy) {
  auto result = std::make_unique<catchment_group>();
  result->packed = asked.front().config.packed != 0;
  std::vector<rails::Rail> opened;
  auto bell = std::make_shared<rails::Bell>();
  const bool may_fail =
      asked.size() > 1 && std::ranges::all_of(asked, [](const catchment_rail& rail) {
        return rail.control != nullptr && rail.spares != nullptr;
      });
  for (const catchment_rail& rail : asked) {
    EngineConfig engine = engine_of(rail.config);
    if (may_fail) engine.absent = 0;  // which the council of all rails decides about
    auto [group, port] = open_rail(std::move(engine), rail.config, !may_fail);
    if (opened.empty()) result->port = port;
    opened.push_back({.name = rail.name, .group = std::move(group), .nominal = rail.bytes_per_ms});
    if (may_fail) {
      opened.back().control =
          open_rail(control_of(*rail.control, bell), *rail.control, false).first;
      opened.back().ways = ways_of(rail, asked.size(), opened.size() - 1);
    }
  }
  if (may_fail) await_switches(opened, asked);
  result->rails = std::make_shared<rails::RailSet>(
      std::move(opened), static_cast<rails::Policy>(policy), asked.front().config.timeout_ns,
      asked.front().config.absent_ns, std::move(bell));
  return result;
}

std::uint64_t write_shares(std::span<const rails::Share> split, catchment_rail_share* shares,
                           std::uint64_t room) {
  for (std::size_t at = 0; at < std::min<std::size_t>(room, split.size()); ++at) {
    shares[at] = {split[at].rail, split[at].first, split[at].elements};
  }
  return split.size();
}

catchment_rail_cost words_of(const rails::RailCost& cost) {
  return {.start_ns = cost.start_ns,
          .bytes_per_ms = cost.bytes_per_ms,
          .nominal = cost.nominal,
          .beside_start_ns = cost.beside_start_ns,
          .beside_bytes_per_ms = cost.beside_bytes_per_ms};
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
const char* wrong_with(const catchment_call& call, const Layout& layout, bool packed) {
  if (call.kind < CATCHMENT_ALL_REDUCE || call.kind > CATCHMENT_REFUSED) return "no such kind";
  if (call.reduction < CATCHMENT_SUM || call.reduction > CATCHMENT_MAX) return "no such reduction";
  if (call.type < CATCHMENT_BYTES || call.type > CATCHMENT_BF16) return "no such type";
  if (call.scaling < CATCHMENT_NONE || call.scaling > CATCHMENT_WHOLE) return "no such scaling";
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
  if (call.packed != 0 && call.scaling == CATCHMENT_NONE) {
    return "sums and means of floats, and nothing else, are packed";
  }
  if (call.packed != 0 && !packed) return "the job's stream has no packed lanes";
  if (call.kind == CATCHMENT_REDUCE_SCATTER && call.elements % layout.ranks != 0) {
    return "the elements are no multiple of the ranks";
  }
  if (call.blocks != 0) {
    const std::uint64_t scattered = call.kind == CATCHMENT_REDUCE_SCATTER ? layout.ranks : 1;
    const std::uint64_t part =
        call.elements / scattered * item_bytes(static_cast<wire::DataType>(call.type));
    if (call.kind != CATCHMENT_ALL_GATHER && call.kind != CATCHMENT_REDUCE_SCATTER) {
      return "only all_gather and reduce_scatter are strided";
    }
    if ((call.step | call.block | call.stride) % wire::kLaneBytes != 0) {
      return "strides are no whole words";
    }
    if (call.block > part || call.block * call.blocks != part) return "the blocks are no part";
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
  const catchment_rail rail{
      .name = "", .config = *config, .bytes_per_ms = 0, .control = nullptr, .spares = nullptr};
  return catchment_rails_open(&rail, 1, CATCHMENT_RAILS_SINGLE, error, error_bytes);
}

catchment_group* catchment_rails_open(const catchment_rail* rails, std::uint32_t count,
                                      std::int32_t policy, char* error, std::size_t error_bytes) {
  const std::span<const catchment_rail> asked(rails, count);
  std::string why = wrong_with(asked, policy);
  try {
    if (why.empty()) return open_rails(asked, policy).release();
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

std::uint32_t catchment_rails_states(catchment_group* group, catchment_rail_state* states,
                                     std::uint32_t room) {
  if (group->guard.in_child()) return 0;
  const std::vector<rails::RailState> known = group->rails->states();
  for (std::uint32_t rail = 0; rail < std::min<std::size_t>(room, known.size()); ++rail) {
    const rails::RailState& state = known[rail];
    states[rail] = {.cost = words_of(state.cost),
                    .parts = state.parts,
                    .bytes = state.bytes,
                    .health = static_cast<std::uint32_t>(state.health),
                    .carrier = state.carrier,
                    .incidents = state.incidents,
                    .last_incident_ns = state.last_incident,
                    .joined = state.joined ? 1U : 0U};
  }
  return group->rails->table_version();
}

std::uint64_t catchment_rails_shares(catchment_group* group, std::uint64_t elements,
                                     catchment_rail_share* shares, std::uint64_t room) {
  if (group->guard.in_child()) return 0;
  return write_shares(group->rails->shares(elements), shares, room);
}

void catchment_rails_costs(catchment_group* group, std::uint64_t elements,
                           catchment_rail_cost* costs, std::uint32_t room) {
  if (group->guard.in_child()) return;
  const std::vector<rails::RailCost> known = group->rails->costs(elements);
  for (std::uint32_t rail = 0; rail < std::min<std::size_t>(room, known.size()); ++rail) {
    costs[rail] = words_of(known[rail]);
  }
}

std::uint64_t catchment_rails_split(const catchment_rail_cost* rails,
                                    const std::uint32_t* together_ns, std::uint32_t count,
                                    std::int32_t policy, std::uint64_t elements,
                                    catchment_rail_share* shares, std::uint64_t room) {
  if (count > CATCHMENT_MOST_RAILS || policy < CATCHMENT_RAILS_WATERFILL ||
      policy > CATCHMENT_RAILS_SINGLE) {
    return 0;
  }
  std::vector<rails::RailCost> costs;
  bool any = false;
  for (const catchment_rail_cost& cost : std::span(rails, count)) {
    costs.push_back({cost.start_ns, cost.bytes_per_ms, cost.nominal, cost.beside_start_ns,
                     cost.beside_bytes_per_ms});
    any = any || cost.bytes_per_ms != 0;
  }
  if (!any) return 0;
  const std::vector<rails::Share> split =
      rails::split(costs, {together_ns, count}, static_cast<rails::Policy>(policy), elements);
  return write_shares(split, shares, room);
}

int catchment_group_forked(const catchment_group* group) { return group->guard.in_child() ? 1 : 0; }

std::uint16_t catchment_group_port(const catchment_group* group) { return group->port; }

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
  Call asked;
  asked.signature = {.kind = static_cast<Kind>(call->kind),
                     .reduction = static_cast<Reduction>(call->reduction),
                     .type = static_cast<catchment::wire::DataType>(call->type),
                     .scaling = static_cast<ScalingMode>(call->scaling),
                     .root = static_cast<std::uint8_t>(call->root),
                     .exponent = static_cast<std::int8_t>(call->exponent),
                     .cancelled = false,
                     .packed = call->packed != 0,
                     .elements = call->elements,
                     .tag = call->tag};
  // Words need no scale.
  const bool few = call->elements * item_bytes(asked.signature.type) <= kGatheredBytes;
  const bool bits_of_array = asked.signature.scaling == ScalingMode::kWhole;  // whatever its length
  if (negotiates(asked.signature.scaling) && few && !bits_of_array) {
    asked.signature.scaling = ScalingMode::kNone;
    asked.signature.exponent = 0;
  }
  if (call->blocks != 0 && call->block != 0) {
    asked.spread = {call->step, call->block, call->blocks, call->stride};
    const std::uint32_t hash = asked.spread->hash();
    asked.signature.root = static_cast<std::uint8_t>(1 + hash % 255);
    asked.signature.tag ^= hash;
  }
  asked.source = static_cast<const std::uint8_t*>(call->source);
  asked.target = static_cast<std::uint8_t*>(call->target);
  asked.priority = call->priority;
  asked.timeout = call->timeout_ns;
  work->operation = group->rails->start(std::move(asked));
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
    result->in_flight += stats.in_flight.get();
    result->held += stats.held.get();
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
  if (work->guard.in_child() || work->refusal) return 1;
  return work->rails->wait(*work->operation, limit_ns) ? 1 : 0;
}

int catchment_work_done(const catchment_work* work) {
  if (work->guard.in_child() || work->refusal) return 1;
  return work->rails->done(*work->operation) ? 1 : 0;
}

int catchment_work_cancel(catchment_work* work) {
  if (work->guard.in_child() || work->refusal) return 0;
  return work->rails->cancel(*work->operation) ? 1 : 0;
}

void catchment_work_result(const catchment_work* work, catchment_result* result) {
  *result = {};
  if (catchment_work_done(work) == 0) return;
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
