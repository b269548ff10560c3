// The part of the C API that several rails have: how they are opened, what they cost, how they
// share.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "catchment_collectives.h"
#include "handles.hpp"
#include "opening.hpp"

using namespace catchment::host;

namespace {

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

}  // namespace

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
