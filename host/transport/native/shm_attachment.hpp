// A shared-memory port of the switch that this process has attached to, and what uses it: one
// stream, or several, each of which gets the frames of its generation.  One thread at a time.
#pragma once

#include <catchment_shm.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

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

class ShmAttachment {
 public:
  // Takes the whole Ethernet frames of one generation.
  class Stream {
   public:
    Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    virtual ~Stream() = default;
    // The frame stays where it is until the attachment delivers again.
    virtual void take(std::span<const std::uint8_t> frame) = 0;
  };

  // Waits up to `timeout_ms` for the switch and the port.  Throws AttachError and
  // std::system_error.
  ShmAttachment(const std::string& path, int timeout_ms);
  // Does not wait: the switch may come later, and the frames that it takes are known then.  Throws
  // AttachError where waiting will not help.
  explicit ShmAttachment(const std::string& path);

  void add(std::uint16_t gen, Stream& stream) { streams_.push_back({gen, &stream}); }
  void remove(const Stream& stream);
  bool serves(std::uint16_t gen) const;

  // Hands at most one batch of frames that have arrived to the streams; frames of no stream go to
  // the oldest one, which counts them.  Returns whether more may be waiting.
  bool deliver();

  // Takes the next frame that this process has sent to itself, if it is the stream's, before those
  // that deliver() has not handed out; valid until the next call.
  std::optional<std::span<const std::uint8_t>> take_own(const Stream& stream);

  // Whether this process runs the switch's program itself.
  bool inside() const;
  // Takes this thread to the processor where fewest others who do, and get frames of this one, were
  // last seen.
  void move_apart();
  catchment_shm* port() const { return port_.get(); }
  std::size_t frame_bytes() const { return frame_bytes_; }
  std::uint64_t errors() const { return errors_; }
  int last_error() const { return last_error_; }
  // Takes note of what a call of the port returned.
  void note(int status);

 private:
  static constexpr int kBatch = 64;
  struct Detach {
    void operator()(catchment_shm* port) const { catchment_shm_detach(port); }
  };
  struct Place {
    std::uint16_t gen;
    Stream* stream;
  };

  Stream* stream_of(std::span<const std::uint8_t> frame) const;

  std::unique_ptr<catchment_shm, Detach> port_;
  std::size_t frame_bytes_ = std::numeric_limits<std::size_t>::max();
  std::vector<Place> streams_;
  std::array<catchment_shm_frame, kBatch> in_{};
  std::uint64_t errors_ = 0;
  int last_error_ = 0;
};

}  // namespace catchment::host
