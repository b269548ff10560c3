#include "nic_model.hpp"

#include <algorithm>

namespace catchment::performance {

using wire::Flag;
using wire::PacketType;

std::uint32_t NicModel::add_host(const NicTiming& timing) {
  hosts_.push_back({timing, fabric_.world.add_node(), 0, {}});
  return static_cast<std::uint32_t>(hosts_.size() - 1);
}

std::uint32_t NicModel::add_member(std::uint32_t host, Part part, const StreamShape& shape,
                                   const StreamTimers& timers, PacketType type,
                                   std::uint32_t identity) {
  const auto which = static_cast<std::uint32_t>(members_.size());
  Member& member = members_.emplace_back();
  member.host = host;
  member.data_bytes = shape.data_bytes;
  member.stream = shape.stream;
  member.timers = fabric_.world.add_node();
  if (part != Part::kReceives) member.sender.emplace(shape, timers, type, identity);
  if (part != Part::kSends) member.receiver.emplace(shape, timers);
  hosts_[host].members.push_back(which);
  return which;
}

void NicModel::start() {
  for (std::uint32_t which = 0; which < members_.size(); ++which) {
    if (members_[which].receiver) watch_heartbeat(which);
  }
}

void NicModel::push(std::uint32_t member, std::uint32_t frames, std::uint32_t operation) {
  const Host& host = hosts_[members_[member].host];
  Frame carried;
  carried.seq = frames;
  carried.ack = operation;
  fabric_.world.schedule(host.source, fabric_.world.now() + host.timing.push,
                         {What::kVectors, member, carried});
}

void NicModel::pull(std::uint32_t which, std::uint32_t operation) {
  Member& member = members_[which];
  Host& host = hosts_[member.host];
  member.receiver->pull(operation, done_);
  finish_pulls(host, host.timing.pull);
  pump(host);
}

void NicModel::fail(std::uint32_t which, bool down) {
  Host& host = hosts_[which];
  host.down = down;
  if (down) return;
  pump(host);
  for (const std::uint32_t member : host.members) {
    if (members_[member].sender) watch_timer(member);
  }
}

void NicModel::on_frame(std::uint32_t which, const Frame& frame) {
  Member& member = members_[which];
  Host& host = hosts_[member.host];
  if (host.down) return;
  const Picos now = fabric_.world.now();
  host.free_at = std::max(host.free_at, now) + host.timing.frame;
  if (member.sender) {
    NicSender& sender = *member.sender;
    if (wire::has(frame.flags, Flag::kACKV)) {
      sender.on_ack(frame.ack, frame.credit, now, done_);
      finish_pulls(host, 0);
    }
    const bool asked = frame.type == PacketType::kMH && wire::has(frame.flags, Flag::kRETX);
    if (asked) sender.on_missing(frame.seq);
  }
  if (member.receiver && frame.type != PacketType::kMH) {
    NicReceiver& receiver = *member.receiver;
    if (receiver.on_data(frame, done_)) progressed_at_ = now;
    finish_pulls(host, host.timing.pull);
    if (member.sender) {
      // A peer asks the switch for a sum by sending its own part again.
      while (const auto missing = receiver.next_missing()) member.sender->on_missing(*missing);
    }
  }
  pump(host);
}

void NicModel::on_vectors(std::uint32_t which, std::uint32_t frames, std::uint32_t operation) {
  Member& member = members_[which];
  member.sender->queue(frames, operation);
  pump(hosts_[member.host]);
}

void NicModel::on_heartbeat(std::uint32_t which) {
  Member& member = members_[which];
  Host& host = hosts_[member.host];
  if (member.heartbeat_at != fabric_.world.now()) return;
  member.heartbeat_at = -1;
  if (member.receiver->deadline() > fabric_.world.now()) return watch_heartbeat(which);
  member.receiver->on_interval();
  pump(host);
}

void NicModel::on_timeout(std::uint32_t which) {
  Member& member = members_[which];
  Host& host = hosts_[member.host];
  const Picos now = fabric_.world.now();
  if (member.timeout_at != now) return;
  member.timeout_at = -1;
  if (host.down) return;
  if (member.sender->deadline() <= now) {
    member.sender->on_timeout(now);
    pump(host);
  }
  watch_timer(which);
}

void NicModel::on_pump(std::uint32_t which) {
  Host& host = hosts_[which];
  if (host.pump_at != fabric_.world.now()) return;
  host.pump_at = -1;
  pump(host);
}

// Bytes that may wait for the line: the MAC's, or on a line that sends these in less time than a
// frame takes from here to the MAC as many as keep it busy meanwhile.
std::size_t NicModel::room_of(const Host& host, Picos byte) {
  if (byte == 0) return host.timing.fifo_bytes;
  const auto under_way = static_cast<std::size_t>((host.timing.respond + byte - 1) / byte);
  return std::max(host.timing.fifo_bytes, under_way);
}

// Sends while the MAC takes frames; each member in turn.
void NicModel::pump(Host& host) {
  if (host.down || host.members.empty()) return;
  const Picos now = fabric_.world.now();
  const world::Line& line = fabric_.line(host.line);
  const std::size_t room = room_of(host, line.timing().byte);
  const std::size_t count = host.members.size();
  for (std::size_t idle = 0; idle < count;) {
    if (line.holds_more(room, now)) {
      const Picos at = line.free_at() - static_cast<Picos>(room) * line.timing().byte;
      if (host.pump_at < 0 || host.pump_at > at) {
        host.pump_at = at;
        const auto which = static_cast<std::uint32_t>(&host - hosts_.data());
        fabric_.world.schedule(host.source, at, {What::kPump, which, {}});
      }
      return;
    }
    const std::uint32_t which = host.members[host.turn];
    if (++host.turn == count) host.turn = 0;
    if (send_one(host, members_[which])) {
      if (members_[which].sender) watch_timer(which);
      idle = 0;
    } else {
      ++idle;
    }
  }
}

bool NicModel::send_one(Host& host, Member& member) {
  const Picos now = fabric_.world.now();
  if (member.receiver) {
    NicReceiver& receiver = *member.receiver;
    if (!member.sender) {
      if (const auto missing = receiver.next_missing()) {
        send_heartbeat(host, member, missing);
        return true;
      }
    }
    const bool instead = member.sender && receiver.optional();
    if (receiver.due() && !instead) {
      send_heartbeat(host, member, std::nullopt);
      return true;
    }
  }
  if (member.sender) {
    if (auto frame = member.sender->take(now)) {
      if (member.receiver) {
        member.receiver->write_window(*frame);
        member.receiver->on_carried();
      }
      send(host, member, *frame, member.data_bytes);
      return true;
    }
  }
  if (member.receiver && member.receiver->due()) {
    send_heartbeat(host, member, std::nullopt);
    return true;
  }
  return false;
}

void NicModel::send_heartbeat(Host& host, Member& member, std::optional<Seq> missing) {
  const Picos now = fabric_.world.now();
  NicReceiver& receiver = *member.receiver;
  Frame frame;
  frame.type = PacketType::kHB;
  frame.seq = missing.value_or(receiver.window().ack());
  receiver.write_window(frame);
  if (missing) frame.flags |= static_cast<std::uint8_t>(Flag::kRETX);
  receiver.on_heartbeat(now);
  spoken_ = static_cast<std::uint32_t>(&member - members_.data());
  watch_heartbeat(*spoken_);
  send(host, member, frame, kHeaderFrame);
}

void NicModel::send(Host& host, const Member& member, const Frame& frame, std::size_t bytes) {
  host.free_at = std::max(host.free_at, fabric_.world.now()) + host.timing.frame;
  fabric_.send(member.out, frame, bytes, host.free_at + host.timing.respond);
}

// Sees to it that an event comes no later than the timer runs out.
void NicModel::watch_timer(std::uint32_t which) {
  Member& member = members_[which];
  const Picos due = member.sender->deadline();
  if (due == world::kForever) return;
  if (member.timeout_at >= 0 && member.timeout_at <= due) return;
  member.timeout_at = std::max(due, fabric_.world.now());
  fabric_.world.schedule(member.timers, member.timeout_at, {What::kTimeout, which, {}});
}

// As watch_timer(), for the interval between heartbeats.
void NicModel::watch_heartbeat(std::uint32_t which) {
  Member& member = members_[which];
  if (member.heartbeat_at >= 0) return;  // that event looks again
  member.heartbeat_at = member.receiver->deadline();
  fabric_.world.schedule(member.timers, member.heartbeat_at, {What::kHeartbeat, which, {}});
}

bool NicModel::calm() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return (!member.sender || member.sender->calm()) &&
           (!member.receiver || member.receiver->calm());
  });
}

void NicModel::hash(StateHash& state) const {
  for (const Host& host : hosts_) {
    state.free_at(host.free_at);
    state.number(host.turn);
    state.number((host.down ? 1U : 0U) | (host.pump_at < 0 ? 2U : 0U));
    if (host.pump_at >= 0) state.time(host.pump_at);
  }
  for (const Member& member : members_) {
    state.number(member.heartbeat_at < 0 ? 0 : 1);
    if (member.sender) member.sender->hash(state);
    if (member.receiver) member.receiver->hash(state, member.stream);
  }
}

std::vector<Seq> NicModel::bases() const {
  std::vector<std::optional<Seq>> found;
  for (const Member& member : members_) {
    if (member.stream >= found.size()) found.resize(member.stream + 1);
    if (member.sender && !found[member.stream])
      found[member.stream] = member.sender->window().next();
  }
  std::vector<Seq> out;
  for (const auto& each : found) out.push_back(each.value_or(0));
  return out;
}

std::uint64_t NicModel::room(const std::vector<std::uint32_t>& frames) const {
  std::uint64_t times = ~std::uint64_t{0};
  for (const Member& member : members_) {
    const std::uint32_t each = frames[member.stream];
    if (each == 0) continue;
    if (member.sender) times = std::min<std::uint64_t>(times, member.sender->room() / each);
    if (member.receiver && !member.receiver->drained()) return 0;
  }
  return times;
}

void NicModel::skip(Picos by, const std::vector<std::uint32_t>& frames) {
  for (Host& host : hosts_) {
    host.free_at += by;
    if (host.pump_at >= 0) host.pump_at += by;
  }
  for (Member& member : members_) {
    const std::uint32_t further = frames[member.stream];
    if (member.timeout_at >= 0) member.timeout_at += by;
    if (member.heartbeat_at >= 0) member.heartbeat_at += by;
    if (member.sender) member.sender->skip(by, further);
    if (member.receiver) member.receiver->skip(by, further);
    if (further != 0) progressed_at_ = fabric_.world.now() + by;
  }
}

void NicModel::finish_pulls(const Host& host, Picos delay) {
  for (const std::uint32_t operation : done_) {
    fabric_.world.schedule(host.source, fabric_.world.now() + delay, {What::kDone, operation, {}});
  }
  done_.clear();
}

}  // namespace catchment::performance
