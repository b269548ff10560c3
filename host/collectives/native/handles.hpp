#pragma once

#include <catchment/shm/fork_guard.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "rails/rail_set.hpp"

// What the handles of the C API stand for; one made before fork() is told by its guard.

struct catchment_group {
  std::shared_ptr<catchment::host::rails::RailSet> rails;
  std::uint16_t port = 0;
  bool packed = false;  // its streams may have packed lanes
  catchment::shm::ForkGuard guard{};
};

struct catchment_work {
  std::shared_ptr<catchment::host::rails::RailSet> rails;
  std::shared_ptr<catchment::host::rails::RailOperation> operation;  // none where it was refused
  std::optional<catchment::host::CollectiveFailure> refusal{};
  mutable std::mutex merging{};
  mutable std::optional<catchment::host::CollectiveOutcome>
      outcome{};  // once a caller has asked for the result
  catchment::shm::ForkGuard guard{};
};
