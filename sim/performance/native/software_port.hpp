// The port of an endpoint in software: its frames become those of the simulation, with one lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "fabric.hpp"
#include "port.hpp"

namespace catchment::performance {

// Bytes of a frame's payload that an endpoint sees; `data_bytes` is what a line carries.
inline constexpr std::size_t kLane = wire::kLaneBytes;

class SoftwarePort final : public host::Port {
 public:
  // data_bytes: of a data frame. ring_bytes: may wait for the line.
  SoftwarePort(Fabric& fabric, std::uint16_t gen, std::size_t data_bytes, std::size_t ring_bytes)
      : fabric_(fabric), gen_(gen), data_bytes_(data_bytes), ring_bytes_(ring_bytes) {}

  void plug_in(const Outlet& out) { out_ = out; }
  void arrive(const Frame& frame) { arrived_.push_back(frame); }
  // When half the ring is free.
  [[nodiscard]] Picos writable_at() const;

  std::uint8_t* stage() override;
  using Port::commit;
  void commit(std::size_t bytes, std::span<const std::uint8_t> rest) override;
  bool flush() override;
  std::span<const std::span<const std::uint8_t>> receive() override;
  [[nodiscard]] bool more() const override { return !arrived_.empty(); }
  [[nodiscard]] std::size_t path_bytes() const override { return wire::kHeaderBytes + kLane; }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] std::uint64_t errors() const override { return 0; }
  [[nodiscard]] int last_error() const override { return 0; }
  [[nodiscard]] std::uint64_t foreign() const override { return 0; }

 private:
  using Bytes = std::array<std::uint8_t, wire::kHeaderBytes + kLane>;

  Fabric& fabric_;
  std::uint16_t gen_;
  std::size_t data_bytes_;
  std::size_t ring_bytes_;
  Outlet out_;
  bool full_ = false;
  Bytes staged_{};
  std::deque<Frame> arrived_;
  std::vector<Bytes> batch_;
  std::vector<std::span<const std::uint8_t>> payloads_;
};

}  // namespace catchment::performance
