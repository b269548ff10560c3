// A port of the switch on this machine, through shared memory (docs/explanation/shared-memory.md).
#pragma once

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "envelope.hpp"
#include "port.hpp"
#include "shm_attachment.hpp"

namespace catchment::host {

// A stream's share of an attachment; the attachment's owner makes it deliver.
class ShmShare : public Port, private ShmAttachment::Stream {
 public:
  // `gen`: of the stream, which no other stream of the attachment has.
  ShmShare(std::shared_ptr<ShmAttachment> attachment, std::uint16_t gen, const UdpAddress& local,
           const UdpAddress& peer);
  ~ShmShare() override;

  std::uint8_t* stage() override;
  using Port::commit;
  void commit(std::size_t bytes, std::span<const std::uint8_t> rest) override;
  bool commit_in_place(std::span<std::uint8_t> frame) override;
  bool flush() override;
  Flushed flush_if_free() override;
  // What was delivered since the last call; valid until the attachment delivers again.
  std::span<const std::span<const std::uint8_t>> receive() override;
  std::optional<std::span<const std::uint8_t>> receive_own() override;
  bool more() const override { return false; }
  // Whether something was delivered that nobody has received.
  bool has_frames() const { return !inbox_.empty(); }
  bool may_sleep(bool full, const std::atomic<int>& stop) override;
  std::size_t path_bytes() const override { return attachment_->frame_bytes() - kEnvelopeBytes; }
  int descriptor() const override { return catchment_shm_descriptor(attachment_->port()); }
  std::uint64_t errors() const override { return attachment_->errors(); }
  int last_error() const override { return attachment_->last_error(); }
  std::uint64_t foreign() const override { return foreign_; }
  bool tells_absence() const override { return true; }
  bool absent() const override { return last_error() == ENOTCONN; }
  std::string absence() const override { return catchment_shm_error(attachment_->port()); }

 protected:
  ShmAttachment& attachment() { return *attachment_; }

 private:
  void take(std::span<const std::uint8_t> frame) override;
  // A frame's payload, if it is the switch's.
  std::optional<std::span<const std::uint8_t>> open(std::span<const std::uint8_t> frame);

  std::shared_ptr<ShmAttachment> attachment_;
  Envelope envelope_;
  std::uint8_t* staged_ = nullptr;
  bool full_ = false;  // since the last flush
  std::vector<std::span<const std::uint8_t>> inbox_;
  std::vector<std::span<const std::uint8_t>> received_;
  std::uint64_t foreign_ = 0;
};

// A port that one stream, or one group of streams behind one address, has for itself.
class ShmPort final : public ShmShare {
 public:
  // Waits up to `timeout_ms` for the switch and the port.  Throws AttachError and
  // std::system_error.
  ShmPort(const std::string& path, const UdpAddress& local, const UdpAddress& peer, int timeout_ms);

  std::span<const std::span<const std::uint8_t>> receive() override;
  bool more() const override { return more_; }

 private:
  bool more_ = false;
};

}  // namespace catchment::host
