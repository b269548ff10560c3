#include "shm_port.hpp"

#include <cerrno>

namespace catchment::host {

ShmPort::ShmPort(const std::string& path, const UdpAddress& local, const UdpAddress& peer,
                 int timeout_ms)
    : envelope_(local, peer) {
  std::array<char, 512> error{};
  int status = CATCHMENT_SHM_OK;
  port_.reset(catchment_shm_attach(path.c_str(), timeout_ms, &status, error.data(), error.size()));
  if (!port_) throw AttachError(error.data(), status != CATCHMENT_SHM_TIMEOUT);
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

std::uint8_t* ShmPort::stage() {
  staged_ = static_cast<std::uint8_t*>(catchment_shm_reserve(port_.get()));
  full_ |= staged_ == nullptr;
  return staged_ == nullptr ? nullptr : staged_ + kEnvelopeBytes;
}

void ShmPort::commit(std::size_t bytes, std::span<const std::uint8_t> rest) {
  envelope_.write(staged_, bytes + rest.size());
  note(catchment_shm_commit_with(port_.get(), static_cast<std::uint32_t>(kEnvelopeBytes + bytes),
                                 rest.data(), static_cast<std::uint32_t>(rest.size())));
}

bool ShmPort::flush() {
  note(catchment_shm_flush(port_.get()));
  const bool all = !full_;
  full_ = false;
  return all;
}

std::span<const std::span<const std::uint8_t>> ShmPort::receive() {
  const int count = catchment_shm_peek(port_.get(), in_.data(), kBatch);
  more_ = count == kBatch;
  note(count);
  std::size_t kept = 0;
  for (int i = 0; i < count; ++i) {
    const catchment_shm_frame& frame = in_[static_cast<std::size_t>(i)];
    const auto payload =
        envelope_.open({static_cast<const std::uint8_t*>(frame.data), frame.length});
    if (payload) {
      payloads_[kept++] = *payload;
    } else {
      ++foreign_;
    }
  }
  return {payloads_.data(), kept};
}

bool ShmPort::may_sleep(bool full, const std::atomic<int>& stop) {
  const int events = CATCHMENT_SHM_FRAMES | (full ? CATCHMENT_SHM_ROOM : 0);
  static_assert(sizeof stop == sizeof(int));
  if (catchment_shm_look(port_.get(), events, reinterpret_cast<const int*>(&stop)) != 0) {
    return false;
  }
  return stop.load() == 0 && catchment_shm_arm(port_.get(), events) == CATCHMENT_SHM_OK;
}

void ShmPort::note(int status) {
  if (status >= 0) {
    last_error_ = 0;
    return;
  }
  const int error = status == CATCHMENT_SHM_CORRUPT ? EPROTO : ENOTCONN;
  errors_ += error != last_error_ ? 1 : 0;
  last_error_ = error;
}

}  // namespace catchment::host
