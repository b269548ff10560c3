#include "shm_port.hpp"

#include <utility>

#include "catchment/shm/insider.hpp"

namespace catchment::host {
namespace {

constexpr std::uint16_t kAnyGeneration = 0;  // no stream's

}  // namespace

ShmShare::ShmShare(std::shared_ptr<ShmAttachment> attachment, std::uint16_t gen,
                   const UdpAddress& local, const UdpAddress& peer)
    : attachment_(std::move(attachment)), envelope_(local, peer) {
  attachment_->add(gen, *this);
}

ShmShare::~ShmShare() { attachment_->remove(*this); }

std::uint8_t* ShmShare::stage() {
  staged_ = static_cast<std::uint8_t*>(catchment_shm_reserve(attachment_->port()));
  full_ |= staged_ == nullptr;
  return staged_ == nullptr ? nullptr : staged_ + kEnvelopeBytes;
}

void ShmShare::commit(std::size_t bytes, std::span<const std::uint8_t> rest) {
  envelope_.write(staged_, bytes + rest.size());
  attachment_->note(catchment_shm_commit_with(
      attachment_->port(), static_cast<std::uint32_t>(kEnvelopeBytes + bytes), rest.data(),
      static_cast<std::uint32_t>(rest.size())));
}

bool ShmShare::commit_in_place(std::span<std::uint8_t> frame) {
  static_assert(kFront == kEnvelopeBytes);
  std::uint8_t* const whole = frame.data() - kEnvelopeBytes;
  envelope_.write(whole, frame.size());
  const int status =
      shm::commit_in_place(attachment_->port(), {whole, kEnvelopeBytes + frame.size()});
  attachment_->note(status);
  return status > 0;
}

bool ShmShare::flush() {
  attachment_->note(catchment_shm_flush(attachment_->port()));
  return !std::exchange(full_, false);
}

Flushed ShmShare::flush_if_free() {
  const int status = shm::flush_if_free(attachment_->port());
  if (status == 0) return Flushed::kLater;
  attachment_->note(status);
  return std::exchange(full_, false) ? Flushed::kFull : Flushed::kAll;
}

std::span<const std::span<const std::uint8_t>> ShmShare::receive() {
  received_.clear();
  received_.swap(inbox_);
  return received_;
}

std::optional<std::span<const std::uint8_t>> ShmShare::receive_own() {
  while (const auto frame = attachment_->take_own(*this)) {
    if (const auto payload = open(*frame)) return payload;
  }
  return std::nullopt;
}

void ShmShare::take(std::span<const std::uint8_t> frame) {
  if (const auto payload = open(frame)) inbox_.push_back(*payload);
}

std::optional<std::span<const std::uint8_t>> ShmShare::open(std::span<const std::uint8_t> frame) {
  const auto payload = envelope_.open(frame);
  foreign_ += payload ? 0 : 1;
  return payload;
}

bool ShmShare::may_sleep(bool full, const std::atomic<int>& stop) {
  const int events = CATCHMENT_SHM_FRAMES | (full ? CATCHMENT_SHM_ROOM : 0);
  static_assert(sizeof stop == sizeof(int));
  catchment_shm* const port = attachment_->port();
  if (catchment_shm_look(port, events, reinterpret_cast<const int*>(&stop)) != 0) return false;
  return stop.load() == 0 && catchment_shm_arm(port, events) == CATCHMENT_SHM_OK;
}

ShmPort::ShmPort(const std::string& path, const UdpAddress& local, const UdpAddress& peer,
                 int timeout_ms)
    : ShmShare(std::make_shared<ShmAttachment>(path, timeout_ms), kAnyGeneration, local, peer) {}

std::span<const std::span<const std::uint8_t>> ShmPort::receive() {
  more_ = attachment().deliver();
  return ShmShare::receive();
}

}  // namespace catchment::host
