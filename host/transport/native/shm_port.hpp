// A port of the switch on this machine, through shared memory (docs/shared-memory.md).
#pragma once

#include <catchment_shm.h>

#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "envelope.hpp"
#include "port.hpp"

namespace catchment::host {

// The switch cannot be attached to; says why.
class AttachError : public std::runtime_error {
 public:
  AttachError(const std::string& why, bool final) : std::runtime_error(why), final_(final) {}
  // Whether waiting longer would not help.
  bool final() const { return final_; }

 private:
  bool final_;
};

class ShmPort final : public Port {
 public:
  // Waits up to `timeout_ms` for the switch and the port.  Throws AttachError and
  // std::system_error.
  ShmPort(const std::string& path, const UdpAddress& local, const UdpAddress& peer, int timeout_ms);

  std::uint8_t* stage() override;
  using Port::commit;
  void commit(std::size_t bytes, std::span<const std::uint8_t> rest) override;
  bool flush() override;
  std::span<const std::span<const std::uint8_t>> receive() override;
  bool more() const override { return more_; }
  bool may_sleep(bool full, const std::atomic<int>& stop) override;
  std::size_t path_bytes() const override { return frame_bytes_ - kEnvelopeBytes; }
  int descriptor() const override { return catchment_shm_descriptor(port_.get()); }
  std::uint64_t errors() const override { return errors_; }
  int last_error() const override { return last_error_; }
  std::uint64_t foreign() const override { return foreign_; }
  bool absent() const override { return last_error_ == ENOTCONN; }
  std::string absence() const override { return catchment_shm_error(port_.get()); }

 private:
  static constexpr int kBatch = 64;
  struct Detach {
    void operator()(catchment_shm* port) const { catchment_shm_detach(port); }
  };

  void note(int status);

  std::unique_ptr<catchment_shm, Detach> port_;
  Envelope envelope_;
  std::size_t frame_bytes_ = 0;
  std::uint8_t* staged_ = nullptr;
  bool full_ = false;  // since the last flush

  std::array<catchment_shm_frame, kBatch> in_{};
  std::array<std::span<const std::uint8_t>, kBatch> payloads_{};
  bool more_ = false;

  std::uint64_t errors_ = 0;
  int last_error_ = 0;
  std::uint64_t foreign_ = 0;
};

}  // namespace catchment::host
