// The port of a member in software on a line: the end host's network card and stack, as far as the
// protocol sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "envelope.hpp"
#include "port.hpp"
#include "protocol_line.hpp"

namespace catchment::cosim {

class LinePort final : public host::Port {
 public:
  // ring_bytes: what may wait for the line.
  LinePort(const host::UdpAddress& local, const host::UdpAddress& peer, std::size_t path_bytes,
           std::size_t ring_bytes)
      : envelope_(local, peer), path_bytes_(path_bytes), ring_bytes_(ring_bytes) {}

  void attach(ProtocolLine& line) { line_ = &line; }
  // The time of what follows.
  void set(Picos now) { now_ = now; }
  void arrive(std::shared_ptr<const Bytes> frame) { arrived_.push_back(std::move(frame)); }
  [[nodiscard]] std::size_t waiting() const { return arrived_.size(); }
  // When half the ring is free.
  [[nodiscard]] Picos writable_at() const;

  std::uint8_t* stage() override;
  using Port::commit;
  void commit(std::size_t bytes, std::span<const std::uint8_t> rest) override;
  bool flush() override;
  std::span<const std::span<const std::uint8_t>> receive() override;
  [[nodiscard]] bool more() const override { return !arrived_.empty(); }
  [[nodiscard]] std::size_t path_bytes() const override { return path_bytes_; }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] std::uint64_t errors() const override { return 0; }
  [[nodiscard]] int last_error() const override { return 0; }
  [[nodiscard]] std::uint64_t foreign() const override { return foreign_; }

 private:
  host::Envelope envelope_;
  std::size_t path_bytes_;
  std::size_t ring_bytes_;
  ProtocolLine* line_ = nullptr;
  Picos now_ = 0;
  bool full_ = false;
  std::uint64_t foreign_ = 0;
  Bytes staged_;
  std::deque<std::shared_ptr<const Bytes>> arrived_;
  std::vector<std::shared_ptr<const Bytes>> batch_;
  std::vector<std::span<const std::uint8_t>> payloads_;
};

}  // namespace catchment::cosim
