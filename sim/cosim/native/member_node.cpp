#include "member_node.hpp"

#include <algorithm>
#include <cfenv>
#include <stdexcept>
#include <utility>

#include "tagged_port.hpp"

namespace catchment::cosim {

namespace {

constexpr Picos kNano = 1000;
// An endpoint takes time 0 for "never".
constexpr Nanos kEpoch = 1'000'000'000;

Nanos nanos_of(Picos now) { return kEpoch + now / kNano; }
Picos picos_of(Nanos time) { return (time - kEpoch) * kNano; }

// Denormals and rounding as the number formats need them, whatever this thread computes else.
class PlainFloats {
 public:
  PlainFloats() {
    std::fegetenv(&kept_);
    std::fesetenv(FE_DFL_ENV);
  }
  PlainFloats(const PlainFloats&) = delete;
  PlainFloats& operator=(const PlainFloats&) = delete;
  ~PlainFloats() { std::fesetenv(&kept_); }

 private:
  std::fenv_t kept_{};
};

}  // namespace

void MemberNode::attach(ProtocolLine& line) { line_ = &line; }

void MemberNode::join(const host::EndpointConfig& config, const host::UdpAddress& local,
                      const host::UdpAddress& peer, Picos now) {
  if (line_ == nullptr) throw std::logic_error("the host is not plugged in");
  member_.reset();
  stats_ = std::make_unique<host::Stats>();
  failure_.reset();
  handled_ = 0;
  auto keys = host::keys_of(config);
  const std::size_t longest = host::longest_frame(config);
  const std::size_t path = longest + (keys.empty() ? 0 : wire::kTagBytes);
  auto port = std::make_unique<LinePort>(local, peer, path, timing_.ring_bytes);
  line_port_ = port.get();
  line_port_->attach(*line_);
  port_ = host::with_tags(std::move(port), std::move(keys), longest);
  member_ = std::make_unique<host::Member>(config, *port_, *stats_);
  wake(now);
}

std::shared_ptr<host::Request> MemberNode::push(host::Memory memory, host::Scaling scaling,
                                                Picos now) {
  auto request = std::make_shared<host::Request>(memory, scaling, nanos_of(now));
  member().push(request, nanos_of(now));
  wake(now);
  return request;
}

std::shared_ptr<host::Request> MemberNode::pull(host::Memory memory, host::Scaling scaling,
                                                Picos now) {
  auto request = std::make_shared<host::Request>(memory, scaling, nanos_of(now));
  member().pull(request, nanos_of(now));
  wake(now);
  return request;
}

std::shared_ptr<Watch> MemberNode::watch(std::shared_ptr<host::Request> request) {
  auto watch = std::make_shared<Watch>();
  watches_.emplace_back(std::move(request), watch);
  return watch;
}

void MemberNode::on_frame(std::uint32_t /*port*/, Arrival&& arrival) {
  if (arrival.damaged) {
    ++counts_.damaged;
    return;
  }
  if (line_port_ == nullptr) return;
  if (arriving_.size() + line_port_->waiting() >= timing_.ring_frames) {
    ++counts_.overrun;
    return;
  }
  arriving_.emplace_back(arrival.last + timing_.receive, std::move(arrival.bytes));
  wake(arriving_.front().first);
}

void MemberNode::on_time(Picos now) {
  if (next_wake_ && *next_wake_ <= now) next_wake_.reset();
  if (member_ == nullptr) return;
  if (now < busy_until_) {
    wake(busy_until_);
    return;
  }
  serve(now);
}

host::Member& MemberNode::member() {
  if (member_ == nullptr) throw std::logic_error("the host has not joined a job");
  return *member_;
}

void MemberNode::serve(Picos now) {
  const PlainFloats floats;
  const Nanos time = nanos_of(now);
  line_port_->set(now);
  for (; !arriving_.empty() && arriving_.front().first <= now; arriving_.pop_front()) {
    line_port_->arrive(std::move(arriving_.front().second));
  }
  member_->receive(time);
  const bool sends_more = member_->transmit(time);
  auto health = member_->supervise(time);
  if (health && health->expired) {
    failure_ = health->expired;
    member_->fail(*failure_, time);
  }
  std::erase_if(watches_, [&](const auto& one) {
    if (!one.first->done()) return false;
    one.second->at = now;
    return true;
  });
  const std::uint64_t handled = stats_->frames_sent.get() + stats_->frames_received.get();
  busy_until_ = now + static_cast<Picos>(handled - handled_) * timing_.frame;
  handled_ = handled;
  if (member_->blocked()) {
    wake(std::max(line_port_->writable_at(), now + kNano));
  } else if (sends_more || port_->more()) {
    wake(std::max(busy_until_, now + kNano));
  }
  if (!arriving_.empty()) wake(arriving_.front().first);
  const Nanos deadline = member_->deadline();
  if (deadline != kNever) wake(std::max(picos_of(deadline), now + kNano));
}

// An earlier wake-up that is due anyway leads to all later ones.
void MemberNode::wake(Picos at) {
  at = std::max({at, busy_until_, world_.now()});
  if (next_wake_ && *next_wake_ <= at) return;
  next_wake_ = at;
  world_.schedule(source_, at, {this, 0, true, {}});
}

}  // namespace catchment::cosim
