#include "software_model.hpp"

#include <algorithm>
#include <cstring>

namespace catchment::performance {

using wire::DataType;
using wire::PacketType;

namespace {

constexpr Picos kNano = 1000;
// An endpoint takes time 0 for "never".
constexpr Nanos kEpoch = 1'000'000'000;
constexpr Nanos kTimeout = 1'000'000'000;

Nanos nanos_of(Picos now) { return kEpoch + now / kNano; }
Picos picos_of(Nanos time) { return (time - kEpoch) * kNano; }

}  // namespace

std::uint32_t SoftwareModel::add_host(const SoftwareTiming& timing) {
  hosts_.push_back({timing, fabric_.world.add_node()});
  return static_cast<std::uint32_t>(hosts_.size() - 1);
}

std::uint32_t SoftwareModel::add_member(std::uint32_t host, Part part, const StreamShape& shape,
                                        PacketType type, std::uint32_t identity,
                                        std::uint32_t wid) {
  const auto which = static_cast<std::uint32_t>(members_.size()) | kSoftware;
  Member& member = members_.emplace_back();
  member.host = host;
  member.identity = identity;
  member.sums = type != PacketType::kPARAM;
  host::StreamConfig stream;
  stream.name = "stream";
  stream.gen = 1;
  stream.slots = shape.slots;
  stream.window = shape.window;
  stream.base = shape.base;
  stream.lanes = 1;
  stream.param_bytes = kLane;
  host::EndpointConfig config;
  const bool sends = part == Part::kSends;
  config.role = part == Part::kBoth    ? host::Role::kPeer
                : sends == member.sums ? host::Role::kWorker
                                       : host::Role::kRoot;
  if (part != Part::kReceives) config.out = stream;
  if (part != Part::kSends) config.in = stream;
  config.wid = static_cast<std::uint8_t>(wid);
  config.peer = "switch";
  config.timeout = kTimeout;
  member.stats = std::make_unique<host::Stats>();
  member.port = std::make_unique<SoftwarePort>(fabric_, stream.gen, shape.data_bytes,
                                               hosts_[host].timing.ring_bytes);
  member.member = std::make_unique<host::Member>(config, *member.port, *member.stats);
  return which;
}

void SoftwareModel::start() {
  for (std::uint32_t i = 0; i < members_.size(); ++i) wake(i | kSoftware, fabric_.world.now());
}

SoftwareModel::Transfer SoftwareModel::make(const Member& member, std::uint32_t frames,
                                            std::uint32_t operation, Seq first) {
  Transfer transfer{nullptr, std::vector<std::uint8_t>(frames * kLane), operation};
  for (std::uint32_t i = 0; i < frames; ++i) {
    const std::uint32_t value = NicSender::contribution(member.identity, first + i);
    std::memcpy(&transfer.memory[i * kLane], &value, kLane);
  }
  const host::Memory memory{transfer.memory.data(), member.sums ? frames : frames * kLane,
                            member.sums ? DataType::kINT32 : DataType::kBYTES};
  transfer.request =
      std::make_shared<host::Request>(memory, host::Scaling{}, nanos_of(fabric_.world.now()));
  return transfer;
}

void SoftwareModel::push(std::uint32_t which, std::uint32_t frames, std::uint32_t operation) {
  Member& member = at(which);
  member.pushes.push_back(make(member, frames, operation, member.pushed));
  member.pushed += frames;
  member.member->push(member.pushes.back().request, nanos_of(fabric_.world.now()));
  wake(which, fabric_.world.now());
}

void SoftwareModel::pull(std::uint32_t which, std::uint32_t frames, std::uint32_t operation) {
  Member& member = at(which);
  member.pulls.push_back(make(member, frames, operation, 0));
  member.member->pull(member.pulls.back().request, nanos_of(fabric_.world.now()));
  wake(which, fabric_.world.now());
}

void SoftwareModel::fail(std::uint32_t host, bool down) {
  hosts_[host].down = down;
  if (down) return;
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    if (members_[i].host == host) wake(i | kSoftware, fabric_.world.now());
  }
}

void SoftwareModel::on_frame(std::uint32_t which, const Frame& frame) {
  Member& member = at(which);
  const Host& host = hosts_[member.host];
  if (host.down) return;
  if (member.arriving.size() >= host.timing.ring_frames) {
    ++dropped_;
    return;
  }
  member.arriving.emplace_back(fabric_.world.now() + host.timing.receive, frame);
  wake(which, member.arriving.front().first);
}

void SoftwareModel::on_wake(std::uint32_t which) {
  Member& member = at(which);
  const Picos now = fabric_.world.now();
  if (member.wake_at != now) return;
  member.wake_at = -1;
  const Host& host = hosts_[member.host];
  if (host.down) return;
  if (now < host.busy_until) return wake(which, host.busy_until);
  serve(which);
}

void SoftwareModel::serve(std::uint32_t which) {
  Member& member = at(which);
  Host& host = hosts_[member.host];
  const Picos now = fabric_.world.now();
  const Nanos time = nanos_of(now);
  const std::uint64_t before = member.stats->frames_received.get();
  for (; !member.arriving.empty() && member.arriving.front().first <= now;
       member.arriving.pop_front()) {
    member.port->arrive(member.arriving.front().second);
  }
  member.member->receive(time);
  if (member.stats->frames_received.get() != before) progressed_at_ = now;
  const bool sends_more = member.member->transmit(time);
  auto health = member.member->supervise(time);
  if (health && health->expired) member.member->fail(*health->expired, time);
  finish(member, member.pushes, false);
  finish(member, member.pulls, true);
  const std::uint64_t handled =
      member.stats->frames_sent.get() + member.stats->frames_received.get();
  host.busy_until = now + static_cast<Picos>(handled - member.handled) * host.timing.frame;
  member.handled = handled;
  if (member.member->blocked()) {
    wake(which, std::max(member.port->writable_at(), now + kNano));
  } else if (sends_more || member.port->more()) {
    wake(which, std::max(host.busy_until, now + kNano));
  }
  if (!member.arriving.empty()) wake(which, member.arriving.front().first);
  const Nanos deadline = member.member->deadline();
  if (deadline != kNever) wake(which, std::max(picos_of(deadline), now + kNano));
}

void SoftwareModel::finish(Member& member, std::deque<Transfer>& transfers, bool pulls) {
  while (!transfers.empty() && transfers.front().request->done()) {
    const Transfer& done = transfers.front();
    if (done.request->outcome.failure) return;  // it never ends: the stall is reported
    for (std::size_t i = 0; pulls && i < done.memory.size(); i += kLane) {
      std::uint32_t value = 0;
      std::memcpy(&value, &done.memory[i], kLane);
      member.digest += (2 * member.received + 1) * value;
      ++member.received;
    }
    fabric_.world.schedule(hosts_[member.host].source, fabric_.world.now(),
                           {What::kDone, done.operation, {}});
    transfers.pop_front();
  }
}

// An earlier call that is due anyway leads to all later ones.
void SoftwareModel::wake(std::uint32_t which, Picos when) {
  Member& member = at(which);
  when = std::max({when, hosts_[member.host].busy_until, fabric_.world.now()});
  if (member.wake_at >= 0 && member.wake_at <= when) return;
  member.wake_at = when;
  fabric_.world.schedule(hosts_[member.host].source, when, {What::kWake, which, {}});
}

}  // namespace catchment::performance
