#include "catchment/shm/layout.hpp"

namespace catchment::shm {

std::string refusal(const Geometry& geometry) {
  if (!std::has_single_bit(geometry.cells) || geometry.cells < kMinCells ||
      geometry.cells > kMaxCells) {
    return std::to_string(geometry.cells) + " cells: a power of two from " +
           std::to_string(kMinCells) + " to " + std::to_string(kMaxCells) + " is needed";
  }
  if (geometry.cell_bytes % kLine != 0 || geometry.cell_bytes < kMinCellBytes ||
      geometry.cell_bytes > kMaxCellBytes) {
    return "cells of " + std::to_string(geometry.cell_bytes) + " bytes: a multiple of " +
           std::to_string(kLine) + " from " + std::to_string(kMinCellBytes) + " to " +
           std::to_string(kMaxCellBytes) + " is needed";
  }
  return {};
}

}  // namespace catchment::shm
