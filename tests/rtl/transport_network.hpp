// Workers, and a root unless they reduce among themselves, around the slow switch for millions of
// clocks, on the world's lines, which lose, duplicate, delay and reorder frames, and deliver old
// ones again; streams end and begin in the middle of it. Every vector that a host gets is compared
// bit for bit.
#pragma once

#include <algorithm>

#include "sim/world/native/frame_line.hpp"
#include "sim/world/native/world.hpp"
#include "transport_nic.hpp"
#include "transport_switch.hpp"

struct Scenario {
  std::uint32_t all_reduce;
  std::uint32_t workers;
  std::uint32_t slots;
  std::uint32_t vector_bytes;
  std::uint32_t vectors;      // per sender and generation
  std::uint32_t generations;  // all but the last end in the middle
  std::uint32_t hard_reset;   // a generation ends with rst, else with enable
  std::uint32_t hop;          // clocks
  std::uint32_t tail;         // hops that a reordered frame may take more
  std::uint32_t restart;      // the switch forgets everything once in so many clocks, 0: never
  std::uint32_t seed;
  PortGaps gaps;
  // Of every line, per frame.
  double loss;
  double duplicate;
  double replay;
  double reorder;
  std::uint64_t limit;  // clocks
};

struct NetworkOutcome {
  std::uint64_t clocks;
  std::uint64_t vectors;      // compared
  std::uint64_t wrong;        // vectors that are not what they must be
  std::uint64_t broken_laws;  // of the ports
  std::uint64_t unfinished;   // vectors missing when the limit was reached
  std::uint64_t frames;       // that reached the switch
  std::uint64_t lost;
  std::uint64_t replayed;
  std::uint64_t stats[38];  // sums over all NICs
  std::uint64_t busy_beats;
};

// settings: of each generation and NIC 16 words, and 16 with both streams at rest.
// gens: of each generation, up (or both) and down.
class TransportNetwork {
 public:
  using Maker = Nic* (*)(std::uint32_t vector_bytes, std::uint32_t seed);

  TransportNetwork(const Scenario& scenario, const std::uint32_t* settings,
                   const std::uint16_t* gens, Maker worker, Maker root)
      : scenario_(scenario),
        settings_(settings),
        gens_(gens),
        random_(scenario.seed),
        members_(scenario.workers + (scenario.all_reduce != 0 ? 0 : 1)),
        root_(scenario.workers),
        up_(scenario.all_reduce != 0 ? kALLREDUCE : kREDUCE, scenario.workers, scenario.slots,
            scenario.all_reduce != 0 ? ~0U : root_),
        down_(kBCAST, scenario.workers, scenario.slots, root_),
        got_(members_),
        world_(random_()) {
    for (std::uint32_t i = 0; i < members_; ++i) {
      nics_.emplace_back((i == root_ ? root : worker)(scenario.vector_bytes, random_()));
      nics_.back()->gaps = scenario.gaps;
      to_switch_.push_back(line());
      to_nic_.push_back(line());
    }
  }

  NetworkOutcome run() {
    for (generation_ = 0; generation_ < scenario_.generations && !over(); ++generation_) {
      begin();
      const bool last = generation_ + 1 == scenario_.generations;
      const std::uint64_t enough =
          last ? scenario_.vectors : random_() % std::max(1U, scenario_.vectors);
      while (least() < enough && !over()) clock();
      if (last) {
        outcome_.unfinished = enough - std::min<std::uint64_t>(enough, least());
        for (int i = 0; i < 5000; ++i) clock();  // nothing comes twice
      } else {
        end();
      }
    }
    outcome_.clocks = now_;
    for (const auto& nic : nics_) {
      outcome_.broken_laws += nic->broken_laws;
      outcome_.busy_beats += nic->sent_beats;
      for (std::uint32_t i = 0; i < 38; ++i) outcome_.stats[i] += nic->stat(i);
    }
    for (const auto* lines : {&to_switch_, &to_nic_}) {
      for (const Line& line : *lines) {
        outcome_.lost += line.counts().lost;
        outcome_.replayed += line.replayed();
      }
    }
    return outcome_;
  }

 private:
  using Content = std::shared_ptr<const Bytes>;
  using Line = catchment::world::FrameLine<Content>;

  struct Arrival {
    std::uint32_t port;
    bool at_switch;
    Content frame;
  };

  static constexpr catchment::world::Picos kClock = 4000;  // of the NICs, at 250 MHz

  Line line() {
    Line made(world_.seed(), world_.add_line(), {0, scenario_.hop * kClock});
    catchment::world::LineFaults faults;
    faults.loss = scenario_.loss;
    faults.duplicate = scenario_.duplicate;
    faults.replay = scenario_.replay;
    faults.reorder = scenario_.reorder;
    faults.delay = scenario_.hop * scenario_.tail * kClock;
    made.set_faults(faults);
    return made;
  }

  const std::uint32_t* settings_of(std::uint32_t nic, bool at_rest) const {
    return settings_ + 16 * (2 * (members_ * generation_ + nic) + (at_rest ? 1 : 0));
  }
  bool offering() const {
    return std::any_of(nics_.begin(), nics_.end(),
                       [](const auto& n) { return !n->to_send.empty(); });
  }
  bool over() const { return now_ >= scenario_.limit; }
  std::uint64_t least() const { return *std::min_element(got_.begin(), got_.end()); }

  // Different for every generation, sender, vector and lane, over all 32 bits.
  static std::uint32_t value(std::uint32_t generation, std::uint32_t sender, std::uint32_t index,
                             std::uint32_t lane) {
    std::uint32_t x = generation * 0x9e3779b1U ^ sender * 0x85ebca77U ^ index * 0xc2b2ae3dU;
    x = (x + lane * 0x27d4eb2fU) * 0x165667b1U;
    x ^= x >> 15;
    return x * 0x2c1b3c6dU;
  }

  bool last_of(std::uint32_t index) const {
    return index % 16 == 15 || index + 1 == scenario_.vectors;
  }
  static bool saturated(std::uint32_t sender, std::uint32_t index) {
    return (index * 3 + sender) % 7 == 0;
  }
  static bool exponent(std::uint32_t sender, std::uint32_t index) {
    return (index + sender) % 5 != 0;
  }
  std::uint32_t payload(std::uint32_t index) const {
    return last_of(index) ? 1 + index * 37 % scenario_.vector_bytes : scenario_.vector_bytes;
  }

  std::uint64_t meta(std::uint32_t index, bool parameters, bool sat, bool expv) const {
    const std::uint64_t dtype = parameters ? 0 : 1 + index % 4;
    const std::uint64_t exp = parameters ? 0 : index & 0xff;
    const std::uint64_t next = expv ? (index * 7) & 0x7f : 0;
    const std::uint64_t bytes = parameters ? payload(index) : scenario_.vector_bytes;
    return dtype << 35 | exp << 27 | next << 19 | std::uint64_t{expv} << 18 |
           std::uint64_t{sat} << 17 | std::uint64_t{last_of(index)} << 16 | bytes;
  }

  Vector to_push(std::uint32_t sender, std::uint32_t index) const {
    Vector vector;
    for (std::uint32_t lane = 0; lane < scenario_.vector_bytes / 4; ++lane) {
      const std::uint32_t word = value(generation_, sender, index, lane);
      for (int i = 0; i < 4; ++i) vector.data.push_back(static_cast<std::uint8_t>(word >> 8 * i));
    }
    const bool parameters = sender == root_;
    vector.meta = meta(index, parameters, !parameters && saturated(sender, index),
                       !parameters && exponent(sender, index));
    return vector;
  }

  // What a receiver must get as its vector `index` of `generation`.
  bool right(const Vector& vector, std::uint32_t receiver, std::uint32_t generation,
             std::uint64_t at) const {
    const auto index = static_cast<std::uint32_t>(at);
    if (at >= scenario_.vectors) return false;
    const bool sums = scenario_.all_reduce != 0 || receiver == root_;
    bool sat = false;
    bool expv = sums;
    for (std::uint32_t worker = 0; sums && worker < scenario_.workers; ++worker) {
      sat = sat || saturated(worker, index);
      expv = expv && exponent(worker, index);
    }
    std::uint64_t expected = meta(index, !sums, sat, expv);
    // next_exp is the largest that any worker said, even if not all did.
    bool any = false;
    for (std::uint32_t worker = 0; sums && worker < scenario_.workers; ++worker) {
      any = any || exponent(worker, index);
    }
    if (any) expected |= std::uint64_t{(index * 7) & 0x7f} << 19;
    if (vector.meta != expected) return false;
    const std::size_t bytes = expected & 0xffff;
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto lane = static_cast<std::uint32_t>(i / 4);
      std::uint32_t word = 0;
      if (!sums) word = value(generation, root_, index, lane);
      for (std::uint32_t worker = 0; sums && worker < scenario_.workers; ++worker) {
        word += value(generation, worker, index, lane);
      }
      if (vector.data[i] != static_cast<std::uint8_t>(word >> 8 * (i % 4))) return false;
    }
    return true;
  }

  void begin() {
    up_.generation(gens_[2 * generation_]);
    down_.generation(gens_[2 * generation_ + 1]);
    for (std::uint32_t i = 0; i < members_; ++i) {
      nics_[i]->settings(settings_of(i, false));
      if (scenario_.hard_reset != 0) nics_[i]->reset(false);
      got_[i] = 0;
    }
    pushed_.assign(members_, 0);
    waiting_ = true;
  }

  void end() {
    for (std::uint32_t i = 0; i < members_; ++i) {
      Nic& nic = *nics_[i];
      // A host that stops; what it has begun to offer it must go on with.
      if (nic.to_send.size() > 1) nic.to_send.resize(1);
      if (scenario_.hard_reset != 0) {
        nic.to_send.clear();
        nic.from_net.clear();
        nic.received.clear();
        nic.reset(true);
      } else {
        nic.settings(settings_of(i, true));
      }
    }
    const std::uint32_t pause = 8 + random_() % 400;
    ending_ = true;
    for (std::uint32_t i = 0; i < pause || offering(); ++i) clock();
    ending_ = false;
  }

  void send(std::uint32_t port, bool to_switch, Bytes bytes, catchment::world::Picos ready) {
    const auto frame = std::make_shared<const Bytes>(std::move(bytes));
    Line& line = (to_switch ? to_switch_ : to_nic_)[port];
    line.carry(frame, frame->size(), 0, ready, ready,
               [&](const Content& arriving, const auto& copy) {
                 world_.schedule(line.number(), copy.first, {port, to_switch, arriving});
               });
  }

  void refill() {
    if (waiting_) {
      for (const auto& nic : nics_) {
        const std::uint32_t bits = nic->status()[6];
        if ((bits & 3U) != 3U) return;
      }
      waiting_ = false;
    }
    if (ending_) return;
    for (std::uint32_t i = 0; i < members_; ++i) {
      while (pushed_[i] < scenario_.vectors && nics_[i]->to_send.size() < 4) {
        nics_[i]->to_send.push_back(to_push(i, static_cast<std::uint32_t>(pushed_[i]++)));
      }
    }
  }

  void clock() {
    refill();
    for (std::uint32_t i = 0; i < members_; ++i) {
      Nic& nic = *nics_[i];
      nic.clock();
      for (; !nic.to_net.empty(); nic.to_net.pop_front()) {
        send(i, true, std::move(nic.to_net.front().bytes),
             static_cast<catchment::world::Picos>(now_) * kClock);
      }
      for (; !nic.received.empty(); nic.received.pop_front()) check(i, nic.received.front());
    }
    ++now_;
    if (scenario_.restart != 0 && random_() % scenario_.restart == 0) {
      up_.restart();
      down_.restart();
    }
    const auto due = static_cast<catchment::world::Picos>(now_) * kClock + 1;
    while (world_.step(due, [this](const auto& event) { arrive(event.payload, event.at); })) {
    }
  }

  void arrive(const Arrival& arrival, catchment::world::Picos at) {
    if (!arrival.at_switch) {
      // A reset NIC's link is down.
      if (!(ending_ && scenario_.hard_reset != 0)) {
        nics_[arrival.port]->from_net.push_back({*arrival.frame, false});
      }
      return;
    }
    ++outcome_.frames;
    const std::uint16_t gen = get16(*arrival.frame, kOur + 2);
    SwitchStream* const stream = gen == up_.generation()     ? &up_
                                 : gen == down_.generation() ? &down_
                                                             : nullptr;
    if (stream == nullptr) return;
    for (auto& [port, frame] : stream->frame(arrival.port, *arrival.frame)) {
      send(port, false, addressed(std::move(frame), port), at);
    }
  }

  void check(std::uint32_t receiver, const Vector& vector) {
    ++outcome_.vectors;
    // One that the reader had begun when its stream ended may still be on its way to the host.
    const bool old = generation_ != 0 && got_[receiver] == 0 && !ending_;
    if (right(vector, receiver, generation_, got_[receiver])) {
      ++got_[receiver];
      return;
    }
    if (old && any_right(vector, receiver, generation_ - 1)) return;
    ++outcome_.wrong;
  }

  bool any_right(const Vector& vector, std::uint32_t receiver, std::uint32_t generation) const {
    for (std::uint32_t i = 0; i < scenario_.vectors; ++i) {
      if (right(vector, receiver, generation, i)) return true;
    }
    return false;
  }

  const Scenario& scenario_;
  const std::uint32_t* settings_;
  const std::uint16_t* gens_;
  std::mt19937 random_;
  std::uint32_t members_;
  std::uint32_t root_;
  SwitchStream up_;
  SwitchStream down_;
  std::vector<std::unique_ptr<Nic>> nics_;
  std::vector<std::uint64_t> got_;
  std::vector<std::uint64_t> pushed_;
  catchment::world::World<Arrival> world_;
  std::vector<Line> to_switch_;
  std::vector<Line> to_nic_;
  std::uint64_t now_ = 0;
  std::uint32_t generation_ = 0;
  bool waiting_ = false;
  bool ending_ = false;
  NetworkOutcome outcome_{};
};
