#include "ring_links.hpp"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace catchment::host::ring {
namespace {

constexpr Nanos kConnectEvery = 10 * kMillisecond;
// A connection that is lost for less is being made again.
constexpr Nanos kPassing = 20 * kMillisecond;
// A machine that has not answered so many repetitions in a row has gone; the last is after 1.4 s.
// TCP_USER_TIMEOUT would also end a connection whose receiver is only late to read.
constexpr unsigned kUnanswered = 3;
constexpr Nanos kLookEvery = 100 * kMillisecond;
constexpr std::size_t kReadBytes = 256 * 1024;

[[noreturn]] void raise(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void set_option(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);  // a kernel may lack it for MPTCP
}

// Of the rank before the one that greets with `own`.
Greeting before(const Greeting& own) {
  Greeting result = own;
  result.rank = (own.rank + own.ranks - 1) % own.ranks;
  return result;
}

}  // namespace

RingLinks::RingLinks(const UdpAddress& local, const UdpAddress& next, Transport transport,
                     const Greeting& own)
    : transport_(transport),
      own_(own),
      next_address_(resolved(next)),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      listener_(socket()),
      coming_(before(own)) {
  if (!events_.valid()) raise("epoll_create1");
  if (!listener_.valid()) raise("socket");
  set_option(listener_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const sockaddr_in address = resolved(local);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (bind(listener_.get(), generic, sizeof address) != 0) raise("bind");
  if (listen(listener_.get(), Greetings::kMost) != 0) raise("listen");
  watch(listener_, EPOLLIN, false);
}

RingLinks::~RingLinks() {
  if (process_.in_child()) return;
  for (const PrivateSocket* link : {&previous_, &next_}) {
    if (link->valid()) shutdown(link->get(), SHUT_RDWR);
  }
}

PrivateSocket RingLinks::socket() const {
  const int protocol = transport_ == Transport::kMptcp ? IPPROTO_MPTCP : IPPROTO_TCP;
  return PrivateSocket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
}

void RingLinks::watch(const PrivateSocket& socket, std::uint32_t events, bool known) {
  epoll_event event{};
  event.events = events;
  epoll_ctl(events_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket.get(), &event);
}

void RingLinks::keep(Nanos now) {
  accept_previous(now);
  if (sends_ && next_is_silent(now)) drop_next(ETIMEDOUT);
  if (!sends_) connect_next(now);
  if (joined()) joined_at_ = now;
}

bool RingLinks::lost(Nanos now) const {
  return joined_at_ != kNever && !joined() && now - joined_at_ >= kPassing;
}

// Of several paths one may be silent: MPTCP looks after its own.
bool RingLinks::next_is_silent(Nanos now) {
  if (transport_ != Transport::kTcp || now < look_at_) return false;
  look_at_ = now + kLookEvery;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(next_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_retransmits >= kUnanswered || info.tcpi_probes >= kUnanswered;
}

void RingLinks::accept_previous(Nanos now) {
  for (std::size_t taken = 0; now >= accept_at_ && taken < Greetings::kMost; ++taken) {
    PrivateSocket come(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!come.valid()) {
      rest_listener(now, errno);
      break;
    }
    watch(come, EPOLLIN, false);
    coming_.add(std::move(come));
  }
  const std::uint64_t refused = coming_.refused();
  PrivateSocket greeted = coming_.take();
  if (coming_.refused() != refused && !previous_.valid()) last_error_ = EPROTO;
  if (!greeted.valid()) return;
  drop_previous(0);
  previous_ = std::move(greeted);
  ++made_;
  restarted_ = true;
}

// A connection that cannot be accepted stays, and would wake whoever sleeps again and again.
void RingLinks::rest_listener(Nanos now, int error) {
  const bool rests = !is_passing(error) && error != ECONNABORTED;
  if (rests) last_error_ = error;
  if (rests != (accept_at_ != 0)) watch(listener_, rests ? 0U : EPOLLIN, true);
  accept_at_ = rests ? now + kConnectEvery : 0;
}

void RingLinks::connect_next(Nanos now) {
  if (!next_.valid()) {
    if (now < connect_at_) return;
    connect_at_ = now + kConnectEvery;
    next_ = socket();
    if (!next_.valid()) {  // no descriptor is left, for now
      last_error_ = errno;
      return;
    }
    set_option(next_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    watch(next_, EPOLLOUT, false);
  }
  const auto* generic = reinterpret_cast<const sockaddr*>(&next_address_);
  if (connect(next_.get(), generic, sizeof next_address_) != 0 && errno != EISCONN) {
    if (errno == EALREADY || is_passing(errno)) return;
    drop_next(errno);
    return;
  }
  sends_ = true;
  ++made_;
  watch(next_, EPOLLIN, true);
  awaits_ = false;
  queue(own_.bytes());
}

void RingLinks::drop_next(int error) {
  if (sends_) ++errors_;
  last_error_ = error;
  next_ = PrivateSocket();
  sends_ = false;
  out_.clear();
  sent_ = 0;
}

void RingLinks::drop_previous(int error) {
  if (previous_.valid()) ++errors_;
  if (error != 0) last_error_ = error;
  previous_ = PrivateSocket();
}

void RingLinks::queue(std::span<const std::uint8_t> bytes) {
  if (sends_) out_.insert(out_.end(), bytes.begin(), bytes.end());
}

void RingLinks::flush() {
  while (sends_ && sent_ != out_.size()) {
    const ssize_t size = send(next_.get(), &out_[sent_], out_.size() - sent_, MSG_NOSIGNAL);
    if (size > 0) {
      sent_ += static_cast<std::size_t>(size);
    } else if (size < 0 && is_passing(errno)) {
      break;
    } else {
      drop_next(errno);
      return;
    }
  }
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  } else if (sent_ > kReadBytes) {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  const bool awaits = !out_.empty();
  if (sends_ && awaits != awaits_) watch(next_, awaits ? EPOLLIN | EPOLLOUT : EPOLLIN, true);
  awaits_ = awaits;
}

bool RingLinks::read(std::vector<std::uint8_t>& bytes) {
  if (std::exchange(restarted_, false)) bytes.clear();
  // The next rank says nothing: what comes from there is the end.
  std::uint8_t nothing = 0;
  if (sends_) {
    const ssize_t size = recv(next_.get(), &nothing, 1, 0);
    if (size == 0 || (size < 0 && !is_passing(errno))) drop_next(size == 0 ? ECONNRESET : errno);
  }
  if (!previous_.valid()) return false;
  const std::size_t before = bytes.size();
  bytes.resize(before + kReadBytes);
  const ssize_t size = recv(previous_.get(), &bytes[before], kReadBytes, 0);
  bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (size == 0 || (size < 0 && !is_passing(errno))) drop_previous(size == 0 ? ECONNRESET : errno);
  return size == static_cast<ssize_t>(kReadBytes);
}

std::uint16_t RingLinks::port() const {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    raise("getsockname");
  }
  return ntohs(own.sin_port);
}

}  // namespace catchment::host::ring
