#include "group.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "hubs.hpp"

namespace catchment::host {
namespace {

// What a thread looks out for while a group closes: nothing but the port.
const std::atomic<int> kNothing{0};

}  // namespace

Group::Group(EngineConfig config, std::unique_ptr<Port> port, Nanos spin)
    : hub_(std::make_shared<Hub>(nullptr, spin)),
      engine_(std::make_unique<Engine>(std::move(config), std::move(port))) {
  const Hub::Turn turn(*hub_);
  hub_->add(*engine_, nullptr);
}

Group::Group(EngineConfig config, const std::string& path, const UdpAddress& local,
             const UdpAddress& peer, Nanos attach, Nanos spin) {
  hub_ = Hubs::join(path, attach, spin, [&](Hub& hub) {
    const std::uint16_t gen = config.stream.gen;
    if (hub.attachment()->serves(gen)) {
      throw std::invalid_argument("this process has generation " + std::to_string(gen) +
                                  " on that port already");
    }
    auto share = std::make_unique<ShmShare>(hub.attachment(), gen, local, peer);
    ShmShare* const kept = share.get();
    engine_ = std::make_unique<Engine>(std::move(config), std::move(share));
    hub.add(*engine_, kept);
  });
}

Group::~Group() { close(0); }

std::shared_ptr<Operation> Group::start(Call call) {
  auto operation = std::make_shared<Operation>(std::move(call));
  {
    const Hub::Turn turn(*hub_);
    const Nanos now = monotonic_now();
    engine_->start(operation, now);
    hub_->turn(now);
  }
  if (!operation->done.load()) hub_->stir();
  return operation;
}

bool Group::wait(const Operation& operation, Nanos limit) {
  if (operation.done.load(std::memory_order_acquire)) return true;
  const Nanos began = monotonic_now();
  hub_->wait(operation.done, limit > kNever - began ? kNever : began + limit);
  return operation.done.load(std::memory_order_acquire);
}

bool Group::cancel(Operation& operation) {
  const Hub::Turn turn(*hub_);
  return engine_->cancel(operation);
}

std::optional<CollectiveFailure> Group::failure() {
  const Hub::Turn turn(*hub_);
  return engine_->failure();
}

void Group::close(Nanos linger) {
  const std::scoped_lock closing(closing_);
  if (closed_) return;
  closed_ = true;
  const Nanos until = monotonic_now() + linger;
  bool broken = false;
  {
    const Hub::Turn turn(*hub_);
    broken = engine_->failure().has_value() || engine_->busy();
  }
  // The others may not have the last sums yet, nor know that this rank has them.
  while (!broken && monotonic_now() < until) {
    bool settled = false;
    {
      const Hub::Turn turn(*hub_);
      hub_->turn(monotonic_now());
      settled = engine_->settled();
    }
    if (settled) break;
    hub_->sleep(std::min(until, monotonic_now() + kMillisecond), kNothing);
  }
  Hubs::leave(hub_, [&](Hub& hub) {
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
}

}  // namespace catchment::host
