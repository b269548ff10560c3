#include "opening.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catchment/common/clock.hpp"
#include "packed_lanes.hpp"
#include "ring/ring_port.hpp"
#include "udp_port.hpp"

namespace catchment::host {

namespace {

UdpAddress local_of(const catchment_group_config& config) {
  return {config.local_ip, config.local_port};
}

UdpAddress peer_of(const catchment_group_config& config) {
  return {config.switch_ip, config.switch_port};
}

std::optional<TagKey> key_of(const catchment_group_config& config) {
  if (config.key == nullptr) return std::nullopt;
  return tag_key(
      std::span<const std::uint8_t, CATCHMENT_KEY_BYTES>(config.key, CATCHMENT_KEY_BYTES));
}

std::shared_ptr<TermKeys> keys_of(const catchment_group_config& config) {
  const std::optional<TagKey> key = key_of(config);
  return key ? std::make_shared<TermKeys>(*key, config.term_bits) : nullptr;
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
                   .packed = config.packed != 0,
                   .key = key_of(config)};
  if (config.key_frames != 0) engine.stream.key_frames = config.key_frames;
  engine.keys = keys_of(config);
  engine.rank = config.rank;
  engine.place = config.place == 0 ? config.rank : config.place - 1;
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
    const std::size_t longest =
        longest_frame(config.lanes) + (config.key == nullptr ? 0 : wire::kTagBytes);
    auto port =
        std::make_unique<UdpPort>(local_of(config), peer_of(config), longest, engine.stream.window);
    const std::uint16_t bound = port->local().port;
    return {tagged(std::move(port), engine.stream.gen, engine.keys, config.lanes), bound};
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
            .keys = keys_of(config),
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

}  // namespace

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
    if (config.way != CATCHMENT_SWITCH && config.key != nullptr) {
      return std::string(rail.name) + " is a ring, where no switch checks tags";
    }
    if (config.term_bits != 0 && (config.term_bits < TermKeys::kLeastBits ||
                                  config.term_bits > wire::kTermBits || config.base_seq != 0)) {
      return "terms of 2^" + std::to_string(config.term_bits) + " numbers from " +
             std::to_string(config.base_seq) + " on: give " + std::to_string(TermKeys::kLeastBits) +
             ".." + std::to_string(wire::kTermBits) + " bits and base_seq 0";
    }
    if (config.term_bits != 0 && rails.size() > 1) {
      return "keys follow one another on rail " + std::string(rail.name) +
             ": on several rails they do not";
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

}  // namespace catchment::host
