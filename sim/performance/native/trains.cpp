#include "trains.hpp"

#include <algorithm>
#include <utility>

namespace catchment::performance {

namespace {

constexpr std::size_t kLaps = 4;
// The lap for long periods is renewed at each power of this.
constexpr std::uint64_t kRenewed = 16;
// Numbers that fingerprints may be made of: for each event, and before that counts. The work of an
// event is that of some thirty.
constexpr std::uint64_t kAnEvent = 16;
constexpr std::uint64_t kAtFirst = std::uint64_t{1} << 20U;

// Timers are states of their members; an event that looks at one changes nothing before it is due.
bool looks_at_timer(What what) { return what == What::kHeartbeat || what == What::kTimeout; }

bool carries_frame(What what) { return what == What::kAtSwitch || what == What::kAtMember; }

bool power_of(std::uint64_t base, std::uint64_t value) {
  for (; value % base == 0; value /= base) {
  }
  return value == 1;
}

}  // namespace

void Trains::on_heartbeat(std::uint32_t member, std::uint64_t events, Picos end) {
  if (done_) return;
  if (!anchor_) {
    anchor_ = member;
    heard_ = count_ = 0;
    stride_ = 1;
  }
  if (*anchor_ != member || heard_++ % stride_ != 0) return;
  if (compared_ > kAtFirst + kAnEvent * events) {
    stride_ *= 2;
    return;
  }
  auto now = look();
  if (!now) return;
  const auto same = [&now](const Lap& lap) { return lap.state == now->state; };
  const auto found = std::find_if(laps_.begin(), laps_.end(), same);
  const Lap* before = found != laps_.end() ? &*found : nullptr;
  if (before == nullptr && first_ && same(*first_)) before = &*first_;
  if (before != nullptr) {
    if (const auto times = periods(*before, *now, end); times != 0) skip(*before, *now, times);
    laps_.clear();
    first_.reset();
    done_ = true;
    return;
  }
  if (power_of(kRenewed, ++count_)) first_ = *now;
  laps_.push_front(std::move(*now));
  if (laps_.size() > kLaps) laps_.pop_back();
}

std::optional<Trains::Lap> Trains::look() {
  if (!nics_.calm() || !fabric_.clear()) return std::nullopt;
  switches_.settle();
  Lap lap;
  lap.at = fabric_.world.now();
  lap.bases = nics_.bases();
  lap.state = fingerprint(lap.bases);
  for (const world::Line& line : fabric_.lines()) lap.lines.push_back(line.counts());
  lap.types = fabric_.all_counts();
  lap.switches = switches_.counts();
  return lap;
}

Fingerprint Trains::fingerprint(const std::vector<Seq>& bases) {
  const Picos now = fabric_.world.now();
  StateHash state(now, bases);
  nics_.hash(state);
  switches_.hash(state);
  for (const world::Line& line : fabric_.lines()) state.free_at(line.free_at());
  fabric_.world.each([&](const world::Event<Happening>& event) {
    const Happening& what = event.payload;
    if (looks_at_timer(what.what)) return;
    StateHash one(now, bases);
    one.number(static_cast<std::uint64_t>(what.what));
    if (is_appointed(what.what)) {
      one.number(static_cast<std::uint64_t>(event.at));
      one.number(what.frame.ack);
    } else {
      one.time(event.at);
    }
    one.number(event.source);
    one.number(what.target);
    if (const auto stream = stream_of(what)) {
      one.number(static_cast<std::uint64_t>(what.frame.type) << 8U | what.frame.flags);
      one.seq(*stream, what.frame.seq);
      if (wire::has(what.frame.flags, wire::Flag::kACKV)) {
        one.seq(*stream, what.frame.ack);
        one.seq(*stream, what.frame.credit);
      }
    }
    state.unordered(one);
  });
  compared_ += state.taken();
  return state.print();
}

std::uint64_t Trains::periods(const Lap& before, const Lap& now, Picos end) const {
  std::vector<std::uint32_t> frames;
  for (std::size_t i = 0; i < now.bases.size(); ++i) {
    frames.push_back(distance(before.bases[i], now.bases[i]));
  }
  // An idle world is not carried to its end: that nothing moves must be seen.
  const bool moves = std::any_of(frames.begin(), frames.end(), [](auto each) { return each != 0; });
  Picos until = moves ? end : 0;
  bool due = false;
  fabric_.world.each([&](const world::Event<Happening>& event) {
    if (!is_appointed(event.payload.what)) return;
    until = due || moves ? std::min(until, event.at) : event.at;
    due = true;
  });
  if (until <= now.at) return 0;
  const auto fit = static_cast<std::uint64_t>((until - now.at) / (now.at - before.at));
  return std::min(fit, nics_.room(frames));
}

void Trains::skip(const Lap& before, const Lap& now, std::uint64_t times) {
  const Picos by = static_cast<Picos>(times) * (now.at - before.at);
  std::vector<std::uint32_t> frames;
  for (std::size_t i = 0; i < now.bases.size(); ++i) {
    frames.push_back(distance(before.bases[i], now.bases[i]) * static_cast<std::uint32_t>(times));
  }
  fabric_.repeat(before.lines, before.types, times, by);
  switches_.repeat(before.switches, times, by, frames);
  nics_.skip(by, frames);
  fabric_.world.skip(by, [&](world::Event<Happening>& event) {
    Happening& what = event.payload;
    if (is_appointed(what.what)) return;
    event.at += by;
    const auto stream = stream_of(what);
    if (!stream) return;
    what.frame.seq += frames[*stream];
    if (!wire::has(what.frame.flags, wire::Flag::kACKV)) return;
    what.frame.ack += frames[*stream];
    what.frame.credit += frames[*stream];
  });
  skipped_ += by;
}

std::optional<std::uint32_t> Trains::stream_of(const Happening& what) const {
  if (!carries_frame(what.what)) return std::nullopt;
  return what.what == What::kAtSwitch ? switches_.stream(what.target) : nics_.stream(what.target);
}

}  // namespace catchment::performance
