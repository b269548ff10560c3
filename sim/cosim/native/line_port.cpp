#include "line_port.hpp"

#include <algorithm>
#include <utility>

namespace catchment::cosim {

namespace {

constexpr std::size_t kBatch = 64;

}  // namespace

Picos LinePort::writable_at() const {
  const auto half = static_cast<Picos>(ring_bytes_ / 2) * line_->timing().byte;
  return line_->free_at() - half;
}

std::uint8_t* LinePort::stage() {
  if (line_->backlog(now_) > ring_bytes_) {
    full_ = true;
    return nullptr;
  }
  staged_.resize(host::kEnvelopeBytes + path_bytes_);
  return staged_.data() + host::kEnvelopeBytes;
}

void LinePort::commit(std::size_t bytes, std::span<const std::uint8_t> rest) {
  envelope_.write(staged_.data(), bytes + rest.size());
  staged_.resize(host::kEnvelopeBytes + bytes);
  staged_.insert(staged_.end(), rest.begin(), rest.end());
  line_->put(std::make_shared<const Bytes>(std::move(staged_)), false, now_, now_);
  staged_ = {};
}

bool LinePort::flush() { return !std::exchange(full_, false); }

std::span<const std::span<const std::uint8_t>> LinePort::receive() {
  batch_.clear();
  payloads_.clear();
  for (std::size_t i = 0; i < kBatch && !arrived_.empty(); ++i) {
    const auto payload = envelope_.open(*arrived_.front());
    if (payload) {
      payloads_.push_back(*payload);
    } else {
      ++foreign_;
    }
    batch_.push_back(std::move(arrived_.front()));  // the payload lies in it
    arrived_.pop_front();
  }
  return payloads_;
}

}  // namespace catchment::cosim
