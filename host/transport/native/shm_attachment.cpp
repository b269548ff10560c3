#include "shm_attachment.hpp"

#include <algorithm>

#include "catchment/shm/error.hpp"
#include "catchment/shm/insider.hpp"
#include "catchment/softswitch/enter.hpp"
#include "envelope.hpp"

namespace catchment::host {

ShmAttachment::ShmAttachment(const std::string& path, int timeout_ms) {
  try {
    port_.reset(shm::attach(path, timeout_ms, softswitch::enter).release());
  } catch (const shm::ShmError& error) {
    throw AttachError(error.what(), error.status() != CATCHMENT_SHM_TIMEOUT);
  }
  catchment_shm_info info{};
  catchment_shm_get_info(port_.get(), &info);
  frame_bytes_ = info.frame_bytes;
  if (frame_bytes_ <= kEnvelopeBytes + wire::kHeaderBytes) {
    throw AttachError(
        path + ": frames of at most " + std::to_string(frame_bytes_) +
            " bytes cannot carry the protocol; start the switch with a larger bytes=N",
        true);
  }
}

void ShmAttachment::remove(const Stream& stream) {
  std::erase_if(streams_, [&](const Place& place) { return place.stream == &stream; });
}

bool ShmAttachment::serves(std::uint16_t gen) const {
  return std::ranges::find(streams_, gen, &Place::gen) != streams_.end();
}

ShmAttachment::ShmAttachment(const std::string& path) {
  try {
    port_.reset(shm::attach_later(path, softswitch::enter).release());
  } catch (const shm::ShmError& error) {
    throw AttachError(error.what(), true);
  }
  note(catchment_shm_check(port_.get()));
}

bool ShmAttachment::inside() const { return shm::inside(port_.get()); }

void ShmAttachment::move_apart() { shm::move_apart(port_.get()); }

bool ShmAttachment::deliver() {
  const int count = catchment_shm_peek(port_.get(), in_.data(), kBatch);
  note(count);
  for (int i = 0; i < count; ++i) {
    const catchment_shm_frame& frame = in_[static_cast<std::size_t>(i)];
    const std::span bytes(static_cast<const std::uint8_t*>(frame.data), frame.length);
    if (Stream* const stream = stream_of(bytes)) stream->take(bytes);
  }
  return count == kBatch;
}

std::optional<std::span<const std::uint8_t>> ShmAttachment::take_own(const Stream& stream) {
  const auto frame = shm::own_frame(port_.get());
  if (frame.empty() || stream_of(frame) != &stream) return std::nullopt;
  shm::take_own(port_.get());
  return frame;
}

ShmAttachment::Stream* ShmAttachment::stream_of(std::span<const std::uint8_t> frame) const {
  if (streams_.size() > 1 && frame.size() >= kEnvelopeBytes + wire::kHeaderBytes) {
    const std::uint16_t gen = wire::decode(frame.data() + kEnvelopeBytes).gen;
    const auto found = std::ranges::find(streams_, gen, &Place::gen);
    if (found != streams_.end()) return found->stream;
  }
  return streams_.empty() ? nullptr : streams_.front().stream;
}

void ShmAttachment::note(int status) {
  if (status >= 0) {
    last_error_ = 0;
    return;
  }
  const int error = status == CATCHMENT_SHM_CORRUPT ? EPROTO : ENOTCONN;
  errors_ += error != last_error_ ? 1 : 0;
  last_error_ = error;
}

}  // namespace catchment::host
