#include "shm_port.hpp"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "catchment/shm/error.hpp"
#include "ring_traffic.hpp"

namespace catchment::softswitch {

namespace {

constexpr ::mode_t kAnyMode = 0777;

std::uint32_t padded(std::uint32_t length) {
  return (length + shm::kLine - 1) / shm::kLine * shm::kLine;
}

Status wrong(const std::string& option) {
  return {StatusCode::invalid_argument, "'" + option +
                                            "' is not an option of shm:PATH; they are cells=N, "
                                            "bytes=N and mode=OCTAL, after commas"};
}

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  static_cast<void>(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

/// Whether a process is in the same namespace of a kind as this one; false where that is not told.
bool same_namespace(std::uint32_t pid, const char* kind) {
  struct stat own{};
  struct stat other{};
  const std::string file = std::string("/ns/") + kind;
  return stat(("/proc/self" + file).c_str(), &own) == 0 &&
         stat(("/proc/" + std::to_string(pid) + file).c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

std::string text_of(const shm::PeerIdentity& who) {
  return "process " + std::to_string(who.pid) + " of user " + std::to_string(who.uid);
}

}  // namespace

Result<ShmTarget> ShmTarget::parse(const std::string& text) {
  ShmTarget out;
  auto comma = text.find(',');
  out.path = text.substr(0, comma);
  while (comma != std::string::npos) {
    const auto next = text.find(',', comma + 1);
    const std::string option = text.substr(comma + 1, next - comma - 1);
    comma = next;
    const auto equals = option.find('=');
    const std::string key = option.substr(0, equals);
    if (equals == std::string::npos) {
      return wrong(option);
    }
    std::uint32_t value = 0;
    const char* const end = option.data() + option.size();
    const auto [rest, error] =
        std::from_chars(option.data() + equals + 1, end, value, key == "mode" ? 8 : 10);
    if (error != std::errc() || rest != end) {
      return wrong(option);
    }
    if (key == "cells") {
      out.geometry.cells = value;
    } else if (key == "bytes") {
      out.geometry.cell_bytes = padded(value);
    } else if (key == "mode" && value <= kAnyMode) {
      out.mode = value;
    } else {
      return wrong(option);
    }
  }
  if (const std::string problem = shm::refusal(out.geometry); !problem.empty()) {
    return Status(StatusCode::invalid_argument, problem);
  }
  return out;
}

Result<std::unique_ptr<Port>> ShmPort::open(const std::string& target, const PortContext& context) {
  auto parsed = ShmTarget::parse(target);
  if (!parsed.ok()) {
    return parsed.status();
  }
  try {
    return std::unique_ptr<Port>(new ShmPort(target, parsed.value(), context));
  } catch (const shm::ShmError& problem) {
    const bool argument = problem.status() == CATCHMENT_SHM_ARGUMENT;
    return Status(argument ? StatusCode::invalid_argument : StatusCode::internal, problem.what());
  }
}

ShmPort::ShmPort(const std::string& target, const ShmTarget& parsed, const PortContext& context)
    : name_("shm:" + target),
      context_(context),
      geometry_(parsed.geometry),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      listener_(parsed.path, parsed.mode) {
  watch(epoll_.get(), listener_.descriptor());
  if (context_.door != nullptr) {
    ringer_.emplace();
  }
}

ShmPort::~ShmPort() { detach(); }

Received ShmPort::receive(std::vector<rt::InputFrame>& frames) {
  if (!channel_) {
    return {};
  }
  if (armed_) {
    armed_ = false;
    channel_->disarm();  // a wake-up that is under way is taken back by check_link()
  }
  return take(*channel_, context_, inside_ ? Marks::of_insider : Marks::none, frames);
}

Sent ShmPort::send(std::span<const rt::OutFrame> frames) {
  if (!channel_) {
    return {.error = ENOTCONN};
  }
  Sent out;
  if (inside_) {
    const Gate::Batch lock(context_.door->gate);  // callers fill the ring, too
    channel_->out().go_on();
    out = put(*channel_, frames);
    channel_->show();
  } else {
    out = put(*channel_, frames);
  }
  full_.store(out.full, std::memory_order_relaxed);
  return out;
}

void ShmPort::show() {
  if (!channel_) {
    return;
  }
  if (inside_) {
    channel_->wake();
  } else {
    channel_->publish();
  }
}

void ShmPort::keep_to_switch() {
  through_switch_ = true;
  if (inside_) {
    const Gate::Control lock(context_.door->gate);
    context_.door->state.rings[context_.number].through_switch = true;
  }
}

bool ShmPort::arm() {
  if (!channel_) {
    return true;
  }
  armed_ = true;
  const std::uint32_t room = full_.load(std::memory_order_relaxed) ? shm::kForRoom : 0U;
  return channel_->arm(shm::kForFrames | room) == 0;
}

std::string ShmPort::check_link() {
  std::array<epoll_event, 2> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  std::string news = check_peer();
  if (count > 0) {
    const std::string more = answer();
    news += (news.empty() || more.empty() ? "" : "; ") + more;
  }
  return news;
}

std::string ShmPort::check_peer() {
  if (!channel_) {
    return {};
  }
  std::string news = end_of(*channel_, text_of(peer_));
  if (!news.empty()) {
    detach();
  }
  return news;
}

void ShmPort::detach() {
  if (inside_) {
    shut_out();
  }
  channel_.reset();
  armed_ = false;
}

void ShmPort::shut_out() {
  inside_ = false;
  std::vector<std::string> bells;
  {
    const Gate::Control lock(context_.door->gate);
    SharedRing* const rings = context_.door->state.rings;
    rings[context_.number].rings = nullptr;
    for (std::size_t port = 0; port < rt::kPorts; ++port) {
      if (rings[port].rings != nullptr) {
        bells.emplace_back(rings[port].bell.data());
      }
    }
  }
  // The peer may have died after it showed a frame, or after it took back the receiver's word that
  // it waits, and before it rang.
  for (const std::string& bell : bells) {
    static_cast<void>(ringer_->ring(bell));
  }
}

bool ShmPort::may_enter(const shm::AttachRequest& request) const {
  return context_.door != nullptr && !request.bell.empty() && request.who.uid == geteuid() &&
         same_namespace(request.who.pid, "user") && same_namespace(request.who.pid, "mnt") &&
         ringer_->ring(request.bell);
}

bool ShmPort::has_rings() {
  try {
    if (rings_ == nullptr) {
      rings_ = context_.door->memory.allocate_zeros(shm::Mapping::bytes_of(geometry_));
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::optional<shm::Channel> ShmPort::attach(shm::AttachRequest request) {
  const bool wanted = may_enter(request);
  if (wanted && has_rings()) {
    return let_in(std::move(request));
  }
  lacks_room_ = wanted;
  return admit(std::move(request), geometry_, epoch_);
}

std::optional<shm::Channel> ShmPort::let_in(shm::AttachRequest request) {
  CallersDoor& door = *context_.door;
  shm::Mapping rings = shm::Mapping::lay_out(rings_, geometry_, epoch_, request.who.pid);
  {
    const Gate::Control lock(door.gate);
    SharedRing& shared = door.state.rings[context_.number];
    shared = {.rings = rings_, .epoch = epoch_, .through_switch = through_switch_};
    request.bell.copy(shared.bell.data(), shared.bell.size() - 1);
  }
  inside_ = true;
  auto channel =
      shm::let_in(std::move(request), std::move(rings), door.memory.descriptor(), context_.number);
  if (!channel) {
    shut_out();
  }
  return channel;
}

std::string ShmPort::answer() {
  std::string news;
  while (auto request = listener_.accept()) {
    if (channel_) {
      refuse(std::move(*request),
             "port " + std::to_string(context_.number) + " belongs to " + text_of(peer_));
      continue;
    }
    const shm::PeerIdentity who = request->who;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    epoch_ = std::max(epoch_ + 1, static_cast<std::uint64_t>(nanos));
    try {
      auto channel = attach(std::move(*request));
      if (!channel) {
        continue;
      }
      channel_.emplace(std::move(*channel));
    } catch (const shm::ShmError& problem) {
      news = text_of(who) + " cannot be attached: " + problem.what();
      continue;
    }
    peer_ = who;
    watch(epoll_.get(), channel_->link().descriptor());
    news = text_of(who) + " is attached";
    if (inside_) {
      news += ", and runs the program itself";
    } else if (lacks_room_) {
      news += ", and cannot run the program itself: callers' memory has no room for its rings";
    }
  }
  const int trouble = listener_.trouble();
  if (std::exchange(told_, trouble) != trouble && trouble != 0) {
    news += (news.empty() ? "" : "; ") + ("nobody can attach: " + std::string(strerror(trouble)));
  }
  return news;
}

}  // namespace catchment::softswitch
