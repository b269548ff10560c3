#include "cable_port.hpp"

#include <cerrno>
#include <utility>

#include "catchment/shm/error.hpp"
#include "ring_traffic.hpp"

namespace catchment::softswitch {

Result<std::unique_ptr<Port>> CablePort::open(const std::string& path, const PortContext& context) {
  try {
    return std::unique_ptr<Port>(new CablePort(path, context));
  } catch (const shm::ShmError& problem) {
    const bool argument = problem.status() == CATCHMENT_SHM_ARGUMENT;
    return Status(argument ? StatusCode::invalid_argument : StatusCode::internal, problem.what());
  }
}

CablePort::CablePort(const std::string& path, const PortContext& context)
    : name_("cable:" + path), context_(context), connector_(path, {}) {}

Received CablePort::receive(std::vector<rt::InputFrame>& frames) {
  if (!channel_) {
    return {};
  }
  if (std::exchange(armed_, false)) {
    channel_->disarm();  // a wake-up that is under way is taken back by check_link()
  }
  return take(*channel_, context_, Marks::none, frames);
}

Sent CablePort::send(std::span<const rt::OutFrame> frames) {
  if (!channel_) {
    return {.error = ENOTCONN};
  }
  const Sent out = put(*channel_, frames);
  full_.store(out.full, std::memory_order_relaxed);
  return out;
}

void CablePort::show() {
  if (channel_) {
    channel_->publish();
  }
}

bool CablePort::arm() {
  if (!channel_) {
    return true;  // the descriptor tells when there is something to do
  }
  armed_ = true;
  const std::uint32_t room = full_.load(std::memory_order_relaxed) ? shm::kForRoom : 0U;
  return channel_->arm(shm::kForFrames | room) == 0;
}

std::string CablePort::check_link() { return channel_ ? check_switch() : connect(); }

std::string CablePort::connect() {
  std::optional<shm::Attached> made = connector_.step();
  if (made) {
    channel_.emplace(std::move(made->channel));
    told_.clear();
    return "the switch of process " + std::to_string(channel_->mapping().switch_pid()) +
           " is at the other end";
  }
  if (connector_.why() == told_) {
    return {};
  }
  told_ = connector_.why();
  return told_ + "; asking again";
}

std::string CablePort::check_switch() {
  std::string news = end_of(*channel_, "the other switch");
  if (!news.empty()) {
    connector_.lost(CATCHMENT_SHM_DETACHED, news);  // while its connection is there
    told_ = connector_.why();
    channel_.reset();
    armed_ = false;
  }
  return news;
}

}  // namespace catchment::softswitch
