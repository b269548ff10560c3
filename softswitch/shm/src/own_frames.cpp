#include "catchment/shm/own_frames.hpp"

#include <algorithm>

namespace catchment::shm {

namespace {

/// More would leave the processor's own cache before its peer looks.
constexpr std::size_t kMostBytes = 512 * 1024;

}  // namespace

OwnFrames::OwnFrames(const Geometry& geometry)
    : lines_of_cell_(geometry.cell_bytes / kLine),
      frames_(std::clamp<std::size_t>(kMostBytes / geometry.cell_bytes, 1, geometry.cells)) {}

std::uint8_t* OwnFrames::begin() {
  if (lines_ == nullptr) {
    lines_ = std::make_unique_for_overwrite<Line[]>(frames_.size() * lines_of_cell_);
  }
  return cell(put_);
}

void OwnFrames::end(std::uint32_t length, std::uint64_t behind) {
  frames_[put_++ % frames_.size()] = {length, behind};
}

std::span<std::uint8_t> OwnFrames::front() const {
  return waiting() == 0 ? std::span<std::uint8_t>{} : std::span(cell(taken_), frame(taken_).length);
}

void OwnFrames::release() {
  released_ = taken_;
  if (released_ == put_) {
    put_ = taken_ = released_ = 0;  // the first cells are the nearest
  }
}

}  // namespace catchment::shm
