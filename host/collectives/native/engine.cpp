#include "engine.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "elementwise.hpp"
#include "gathered_sums.hpp"

namespace catchment::host {

std::size_t longest_frame(std::uint32_t lanes) {
  return wire::kHeaderBytes + std::size_t{wire::kLaneBytes} * lanes;
}

Engine::Engine(EngineConfig config, std::unique_ptr<Port> port)
    : config_(std::move(config)),
      layout_{.lanes = config_.stream.lanes, .ranks = config_.stream.workers, .rank = config_.rank},
      payload_bytes_(wire::kLaneBytes * config_.stream.lanes),
      frame_bytes_(longest_frame(config_.stream.lanes)),
      port_(std::move(port)),
      mask_(std::bit_ceil(config_.stream.slots) - 1),
      window_(config_.stream.base, config_.stream.window, config_.stream.slots),
      consumer_(config_.stream.base, config_.stream.window),
      heartbeat_(config_.stream.base, config_.stream.window, HeartbeatTimes{}),
      timer_(RetransmitLimits{}, config_.rank),
      losses_(mask_ + 1U),
      schedule_(config_.stream.slots),
      roll_call_(config_.stream.workers, config_.rank),
      places_(mask_ + 1U),
      headers_(mask_ + 1U),
      payloads_(mask_ + 1U, payload_bytes_),
      held_headers_(mask_ + 1U),
      held_payloads_((mask_ + 1U) * payload_bytes_) {
  if (frame_bytes_ > port_->path_bytes()) {
    throw std::system_error(EMSGSIZE, std::generic_category(), "a frame does not fit the path");
  }
}

void Engine::start(const std::shared_ptr<Operation>& operation, Nanos now) {
  operation->submitted = now;
  operation->resent_before = stats_.retransmissions.get();
  if (failure_) {
    operation->outcome.failure = failure_;
    operation->done.store(true, std::memory_order_release);
    return;
  }
  const Signature& signature = operation->call.signature;
  operation->lanes = lanes_of(signature, layout_);
  operation->vectors =
      static_cast<std::uint32_t>((operation->lanes + layout_.lanes - 1) / layout_.lanes);
  operation->rides = operation->lanes != 0 && operation->lanes <= riding(layout_).lanes;
  if (signature.scaling == ScalingMode::kWhole) {
    operation->whole = std::max(scale_of(operation->call).exponent, signature.exponent);
  }
  if (negotiates(signature.scaling)) {
    const auto first = std::min(operation->vectors, config_.stream.slots);
    operation->scales.resize(first);
    const bool given = signature.scaling == ScalingMode::kDelayed;
    const bool whole = signature.scaling == ScalingMode::kWhole;
    // The grid is for short arrays: a short part of a long one has the exponents of the long one.
    // Its steps would cost packed lanes too many of their bits, and without it most guesses are
    // wrong.
    const std::uint64_t most =
        std::uint64_t{std::min(kMostTried, config_.stream.slots)} * layout_.lanes;
    const bool few = first <= kMostTried &&
                     (whole || (!packs(signature) && operation->call.elements_in_all <= most));
    const bool tried = operation->vectors == first && (given || few);
    operation->trial = tried ? first : 0;
    operation->on_grid = tried && few && !whole;
    operation->rides &= tried;  // a frame that carries vectors as well has room for no agreement
    if (!operation->rides) {
      operation->needs.resize(lanes_of_needs(first, layout_));
      operation->tables = tables_of(first, layout_);
    }
  }
  if (sums_words(signature)) {
    count_cut(*operation, 0, count_nonfinite(operation->call));
  }
  if (signature.reduction == Reduction::kMax || sums_words(signature)) keep_room(*operation);
  if (pending_.empty()) progressed_at_ = supervised_at_ = now;
  pending_.push_back(operation);
  schedule_.submit(operation);
}

void Engine::keep_room(Operation& operation) const {
  const Signature& signature = operation.call.signature;
  const std::uint64_t bytes = signature.elements * item_bytes(signature.type) * layout_.ranks;
  try {
    operation.gathered.resize(bytes);
  } catch (const std::bad_alloc&) {
    operation.lacking = bytes;
    operation.cancelled = true;  // the other ranks are told
  }
}

bool Engine::cancel(Operation& operation) {
  if (operation.done.load() || operation.begun) return false;
  operation.cancelled = true;
  return true;
}

bool Engine::turn(Nanos now, IfTaken taken) {
  if (port_ == nullptr) return false;
  const bool received = receive(now);
  const bool sent = transmit(now);
  // Who has received something may receive more of it while another has the port.
  flush(received ? taken : IfTaken::kWait);
  receive_own(now);
  supervise(now);
  return received || sent;
}

void Engine::flush(IfTaken taken) {
  if (taken == IfTaken::kLater) {
    const Flushed flushed = port_->flush_if_free();
    unsent_ = flushed == Flushed::kLater;
    blocked_ = flushed == Flushed::kFull;
  } else {
    unsent_ = false;
    blocked_ = !port_->flush();
  }
}

std::unique_ptr<Port> Engine::reroute(std::unique_ptr<Port> port, std::uint16_t gen, Nanos now) {
  if (port_ != nullptr) port_->discard();  // payloads change while the port is away
  port_.swap(port);
  config_.stream.gen = gen;
  blocked_ = false;
  for (Seq seq = window_.acked(); seq != window_.next(); ++seq) window_.resend(seq);
  progressed_at_ = supervised_at_ = repeated_at_ = now;
  connections_ = port_->connections();
  last_sum_at_ = 0;
  absent_since_ = kNever;
  roll_call_.on_heard();  // or not: the other switch has not been asked yet
  return port;
}

std::uint64_t Engine::key_due() const {
  if (!keys_follow() || failure_) return 0;
  return config_.keys->due(schedule_.position() - distance(window_.acked(), window_.next()));
}

bool Engine::take_key(std::uint64_t term, const TagKey& key) {
  return keys_follow() && config_.keys->take(term, key);
}

bool Engine::is_spent() const {
  const std::uint64_t next = schedule_.position();
  if (keys_follow()) return next >= config_.keys->end();
  return !config_.stream.serves(next + 1);
}

Scale Engine::scale_of_vector(const Operation& operation, std::uint32_t index) const {
  if (operation.scales.empty()) return {operation.call.signature.exponent, false};
  return operation.scales[index % operation.scales.size()];
}

}  // namespace catchment::host
