#include "group.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "hubs.hpp"
#include "tagged_port.hpp"

namespace catchment::host {
namespace {

// How long a group that closes waits until the switch has told the others, and says it again.
constexpr Nanos kFarewell = kSecond / 2;
constexpr Nanos kFarewellEvery = 5 * kMillisecond;

}  // namespace

std::unique_ptr<Port> tagged(std::unique_ptr<Port> port, std::uint16_t gen,
                             std::shared_ptr<const TermKeys> keys, std::uint32_t lanes) {
  if (!keys) return port;
  return with_tags(std::move(port), std::vector{StreamKeys{gen, std::move(keys)}},
                   longest_frame(lanes));
}

Group::Group(EngineConfig config, std::unique_ptr<Port> port, Nanos spin)
    : hub_(std::make_shared<Hub>(nullptr, spin)),
      own_hub_(hub_),
      spin_(spin),
      engine_(std::make_unique<Engine>(std::move(config), std::move(port))) {
  const Hub::Turn turn(*hub_);
  hub_->add(*engine_, nullptr);
}

Group::Group(EngineConfig config, const std::string& path, const UdpAddress& local,
             const UdpAddress& peer, std::optional<Nanos> attach, Nanos spin)
    : spin_(spin) {
  hub_ = Hubs::join(path, attach, spin, [&](Hub& hub) {
    const std::uint16_t gen = config.stream.gen;
    if (hub.attachment()->serves(gen)) {
      throw std::invalid_argument("this process has generation " + std::to_string(gen) +
                                  " on that port already");
    }
    auto share = std::make_unique<ShmShare>(hub.attachment(), gen, local, peer);
    ShmShare* const kept = share.get();
    auto port = tagged(std::move(share), gen, config.keys, config.stream.lanes);
    engine_ = std::make_unique<Engine>(std::move(config), std::move(port));
    hub.add(*engine_, kept);
  });
}

Group::~Group() { close(0); }

std::shared_ptr<Hub> Group::hub() const {
  const std::scoped_lock lock(placing_);
  return hub_;
}

std::shared_ptr<Operation> Group::start(Call call) {
  auto operation = std::make_shared<Operation>(std::move(call));
  const std::shared_ptr<Hub> at = with_turn([&](Hub& hub) {
    const Nanos now = monotonic_now();
    engine_->start(operation, now);
    hub.turn(now);
    return hub.shared_from_this();
  });
  operation->begun_by = monotonic_now();
  at->hand_on(!operation->done.load());
  return operation;
}

bool Group::wait(const Operation& operation, Nanos limit, bool spins) {
  if (operation.done.load(std::memory_order_acquire)) return true;
  const Nanos began = monotonic_now();
  hub()->wait(operation.done, operation.begun_by, limit > kNever - began ? kNever : began + limit,
              spins);
  return operation.done.load(std::memory_order_acquire);
}

bool Group::cancel(Operation& operation) {
  return with_turn([&](Hub&) { return engine_->cancel(operation); });
}

std::optional<CollectiveFailure> Group::failure() {
  return with_turn([&](Hub&) { return engine_->failure(); });
}

Nanos Group::stalled_for() {
  return with_turn([&](Hub&) { return engine_->stalled_for(monotonic_now()); });
}

std::optional<std::uint64_t> Group::missing_ranks(Nanos since) {
  return with_turn([&](Hub&) { return engine_->missing_ranks(since, monotonic_now()); });
}

Nanos Group::last_sum_at() {
  return with_turn([&](Hub&) { return engine_->last_sum_at(); });
}

Nanos Group::all_heard_at() {
  return with_turn([&](Hub&) { return engine_->all_heard_at(); });
}

bool Group::inside() {
  return with_turn(
      [](Hub& hub) { return hub.attachment() != nullptr && hub.attachment()->inside(); });
}

bool Group::absent() {
  return with_turn([&](Hub&) { return engine_->absent(); });
}

Nanos Group::away_for() {
  return with_turn([&](Hub&) { return engine_->away_for(monotonic_now()); });
}

std::uint64_t Group::key_due() {
  return with_turn([&](Hub&) { return engine_->key_due(); });
}

bool Group::take_key(std::uint64_t term, const TagKey& key) {
  bool taken = false;
  const std::shared_ptr<Hub> at = with_turn([&](Hub& hub) {
    taken = engine_->take_key(term, key);
    return hub.shared_from_this();
  });
  at->wake();  // what has waited for the key may go
  return taken;
}

void Group::fail(const CollectiveFailure& failure) {
  with_turn([&](Hub&) { engine_->fail(failure, monotonic_now()); });
}

std::unique_ptr<Port> Group::change(Hub& next, std::unique_ptr<Port> port, ShmShare* share,
                                    std::uint16_t gen) {
  hub_->remove(*engine_);
  std::unique_ptr<Port> before = engine_->reroute(std::move(port), gen, monotonic_now());
  next.add(*engine_, share);
  {
    const std::scoped_lock lock(placing_);
    hub_ = next.shared_from_this();
  }
  return before;
}

bool Group::move(Way& from, Way& to) {
  const std::scoped_lock moving(moving_);
  if (closed_ || (to.path.empty() && to.port == nullptr)) return false;
  const std::shared_ptr<Hub> left = hub();
  std::unique_ptr<Port> before;
  if (to.path.empty()) {
    if (own_hub_ == nullptr) own_hub_ = std::make_shared<Hub>(nullptr, spin_);
    if (left == own_hub_) {
      const Hub::Turn turn(*left);
      before = change(*left, std::move(to.port), nullptr, to.gen);
    } else {
      const Hub::Turn entering(*own_hub_);
      const Hub::Turn leaving(*left);
      before = change(*own_hub_, std::move(to.port), nullptr, to.gen);
      if (!from.path.empty()) before.reset();
    }
  } else {
    const auto enter = [&](Hub& next) {
      std::optional<Hub::Turn> leaving;
      if (&next != left.get()) leaving.emplace(*left);
      auto share = std::make_unique<ShmShare>(next.attachment(), to.gen, to.local, to.peer);
      ShmShare* const kept = share.get();
      auto port = tagged(std::move(share), to.gen, to.keys, engine_->layout().lanes);
      before = change(next, std::move(port), kept, to.gen);
      if (!from.path.empty()) before.reset();  // while nobody turns the attachment that it is of
    };
    if (!Hubs::join_present(to.path, enter)) return false;
  }
  from.port = std::move(before);
  left->wake();  // it may sleep on a port that is gone
  hub()->wake();
  return true;
}

// The switch has to take the farewell before the port is given back.
void Group::say_farewell(Nanos until) {
  bool told = false;
  for (Nanos now = monotonic_now(); !told && now < until; now = monotonic_now()) {
    const std::shared_ptr<Hub> at = with_turn([&](Hub& hub) {
      engine_->leave(now);
      hub.turn(now);
      told = engine_->has_left() || engine_->absent() || engine_->failure().has_value();
      return hub.shared_from_this();
    });
    if (!told) at->sleep(std::min(until, now + kFarewellEvery));
  }
}

void Group::close(Nanos linger) {
  const std::scoped_lock closing(closing_);
  if (closed_) return;
  const Nanos until = monotonic_now() + linger;
  const bool broken =
      with_turn([&](Hub&) { return engine_->failure().has_value() || engine_->busy(); });
  // The others may not have the last sums yet, nor know that this rank has them.
  while (!broken && monotonic_now() < until) {
    bool settled = false;
    const std::shared_ptr<Hub> at = with_turn([&](Hub& hub) {
      hub.turn(monotonic_now());
      settled = engine_->settled();
      return hub.shared_from_this();
    });
    if (settled) break;
    at->sleep(std::min(until, monotonic_now() + kMillisecond));
  }
  if (linger > 0) say_farewell(monotonic_now() + kFarewell);
  const std::scoped_lock moving(moving_);
  closed_ = true;
  const std::shared_ptr<Hub> at = hub();
  Hubs::leave(at, [&](Hub& hub) {
    engine_->fail({.kind = "closed",
                   .message = "the communicator is closed",
                   .hint = "make a new one",
                   .peers = 0,
                   .seq = std::nullopt,
                   .fatal = true},
                  monotonic_now());
    hub.remove(*engine_);
    engine_->release_port();  // the next communicator may want it
  });
  at->hand_on();  // to the other groups of the port
  if (own_hub_ != nullptr && own_hub_ != at) own_hub_->stop();
}

}  // namespace catchment::host
