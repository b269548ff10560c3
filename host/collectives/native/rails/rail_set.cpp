#include "rail_set.hpp"

#include <algorithm>
#include <utility>

#include "catchment/common/clock.hpp"
#include "elementwise.hpp"

namespace catchment::host::rails {
namespace {

// How long a thread that waits for several rails stays with one of them.
constexpr Nanos kSlice = 50'000;
constexpr Nanos kLongest = 50 * kMillisecond;
// A report counts so many operations later, when it has usually come.
constexpr std::uint64_t kReportDelay = 16;
constexpr std::uint64_t kReportEvery = 100;
constexpr std::uint64_t kEarlyReports = 64;
// One operation in so many sends a sample over a rail that is not used, so that one that has become
// faster is noticed; it is so many times as long as the sample.
constexpr std::uint64_t kExploreEvery = 64;
constexpr std::uint64_t kLeastExplored = 4;
// Parts of fewer vectors tell no rate.
constexpr std::uint64_t kLeastMeasured = 32;
// What is believed of a rail before it is used.
constexpr std::uint32_t kFirstStartNs = 100'000;
constexpr std::uint32_t kFirstBytesPerMs = 100'000;
constexpr std::uint32_t kReportTag = 0x7261696c;
constexpr std::uint64_t kHashed = 0xcbf29ce484222325ULL;  // where hashes begin
// What a thread that waits spends at a time on an engine that may move to another port.
constexpr Nanos kStay = 5 * kMillisecond;

bool measures(Policy policy) { return policy != Policy::kFixed && policy != Policy::kSlices; }

// Operations after which the ranks report: 2, 4, 8 .. 64, then every hundredth.
bool reports_after(std::uint64_t number) {
  if (number <= kEarlyReports) return number >= 2 && (number & (number - 1)) == 0;
  return number % kReportEvery == 0;
}

std::vector<RailCost> beliefs(const std::vector<Rail>& rails) {
  std::vector<RailCost> costs;
  for (const Rail& rail : rails) {
    const std::uint32_t rate = rail.nominal == 0 ? kFirstBytesPerMs : rail.nominal;
    costs.push_back({.start_ns = kFirstStartNs, .bytes_per_ms = rate, .nominal = rate});
  }
  return costs;
}

std::uint64_t mixed_in(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x100000001b3ULL;
  return hash ^ hash >> 29;
}

std::uint32_t setup_of(const std::vector<Rail>& rails, Policy policy) {
  std::uint64_t hash = mixed_in(kHashed, static_cast<std::uint64_t>(policy));
  for (const Rail& rail : rails) {
    for (const char letter : rail.name) hash = mixed_in(hash, static_cast<std::uint8_t>(letter));
    hash = mixed_in(hash, rail.nominal);
  }
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

// The tag of a part: ranks that split differently disagree about it.
std::uint32_t tag_of(std::uint32_t tag, std::uint32_t version, const Share& share) {
  std::uint64_t hash = kHashed;
  for (const std::uint64_t word : {std::uint64_t{tag}, std::uint64_t{version}, share.first}) {
    hash = mixed_in(hash, word);
  }
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

Call part_of(const Call& call, const Share& share, std::uint32_t version) {
  Call part = call;
  const std::size_t at = share.first * item_bytes(call.signature.type);
  part.source += at;
  part.target += at;
  part.elements_in_all = call.signature.elements;
  part.signature.elements = share.elements;
  part.signature.tag = tag_of(call.signature.tag, version, share);
  return part;
}

CollectiveFailure on_rail(CollectiveFailure failure, const std::string& rail) {
  if (!rail.empty()) failure.message = "rail " + rail + ": " + failure.message;
  return failure;
}

}  // namespace

RailSet::RailSet(std::vector<Rail> rails, Policy policy, Nanos timeout, Nanos absent,
                 std::shared_ptr<Bell> bell)
    : rails_(std::move(rails)),
      policy_(policy),
      timeout_(timeout),
      absent_(absent),
      table_(beliefs(rails_)),
      samples_(rails_.size()),
      states_(rails_.size()),
      up_((1U << rails_.size()) - 1),
      up_since_(rails_.size()) {
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) states_[rail].carrier = rail;
  if (rails_.size() == 1) return;
  thread_ = std::thread([this] { run(); });
  std::vector<std::shared_ptr<Group>> controls;
  for (const Rail& rail : rails_) {
    if (rail.control != nullptr) controls.push_back(rail.control);
  }
  if (controls.size() != rails_.size()) return;
  council_ = std::make_unique<Council>(std::move(controls), setup_of(rails_, policy_),
                                       std::move(bell), static_cast<CouncilMember&>(*this));
}

RailSet::~RailSet() { close(0); }

std::shared_ptr<RailOperation> RailSet::start(Call call) {
  const bool alone = rails_.size() == 1;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!alone) lock.lock();
  auto operation = std::make_shared<RailOperation>(std::move(call), alone ? 0 : started_++);
  if (alone) {
    operation->parts_.push_back({0, rails_.front().group->start(operation->call_)});
    operation->planned_.store(true, std::memory_order_release);
    return operation;
  }
  waiting_.push_back(operation);
  plan_waiting();
  if (!waiting_.empty()) stirred_.notify_one();
  return operation;
}

void RailSet::plan_waiting() {
  while (!waiting_.empty()) {
    const std::shared_ptr<RailOperation> operation = waiting_.front();
    if (broken_) {
      operation->refused_ = broken_;
      operation->planned_.store(true, std::memory_order_release);
      waiting_.pop_front();
      continue;
    }
    if (frozen_) return;
    for (; !changes_.empty() && changes_.front().from <= operation->number_; changes_.pop_front()) {
      const std::uint32_t risen = changes_.front().up & ~up_;
      for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if ((risen >> rail & 1U) != 0) up_since_[rail] = operation->number_;
      }
      up_ = changes_.front().up;
    }
    while (!reports_.empty() && reports_.front()->counts_at <= operation->number_) {
      const Report& report = *reports_.front();
      if (!report.gathering->done.load(std::memory_order_acquire)) return;
      if (!report.gathering->outcome.failure) table_.learn(report.all);
      reports_.pop_front();
    }
    plan(*operation);
    waiting_.pop_front();
    if (!measures(policy_)) continue;
    measured_.push_back(operation);
    if (reports_after(operation->number_)) report(operation->number_);
  }
}

bool RailSet::splits(const Call& call) const {
  const Signature& signature = call.signature;
  // An expected exponent is used where it is enough for all vectors, which a part does not know.
  return (signature.kind == Kind::kAllReduce || signature.kind == Kind::kReduce) &&
         signature.elements > kGranule && signature.scaling != ScalingMode::kDelayed;
}

std::vector<Share> RailSet::shares_of(const Call& call, std::uint64_t number) const {
  const std::uint64_t elements = call.signature.elements;
  const std::vector<RailCost> costs = usable_costs();
  if (!splits(call)) {
    // What is not split still goes where it is there first; nothing but its size decides.
    const std::uint64_t size = std::max<std::uint64_t>(elements, 1);
    auto shares = split(costs, table_.together_ns(), Policy::kSingle, size);
    shares.front().elements = elements;
    return shares;
  }
  const std::uint64_t tried = kLeastMeasured * layout().lanes;
  const std::uint64_t sample = (tried + kGranule - 1) / kGranule * kGranule;
  const bool explores = number % kExploreEvery == kExploreEvery - 1 && measures(policy_) &&
                        elements >= kLeastExplored * sample;
  if (!explores) return split(costs, table_.together_ns(), policy_, elements);
  const std::uint64_t kept = (elements - sample) / kGranule * kGranule;
  auto shares = split(costs, table_.together_ns(), policy_, kept);
  std::vector<std::uint32_t> idle;
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if ((up_ >> rail & 1U) == 0) continue;
    if (std::ranges::find(shares, rail, &Share::rail) == shares.end()) idle.push_back(rail);
  }
  if (idle.empty()) return split(costs, table_.together_ns(), policy_, elements);
  shares.push_back({idle[number / kExploreEvery % idle.size()], kept, elements - kept});
  return shares;
}

std::vector<RailCost> RailSet::usable_costs() const {
  std::vector<RailCost> costs(table_.costs().begin(), table_.costs().end());
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if ((up_ >> rail & 1U) == 0) costs[rail].bytes_per_ms = 0;
  }
  return costs;
}

void RailSet::plan(RailOperation& operation) {
  Call call = operation.call_;
  Signature& signature = call.signature;
  if (splits(call) && signature.scaling == ScalingMode::kWhole) {
    // Every part needs what the whole array does.
    const Scale scale = scale_of(signature.type, call.source, signature.elements);
    signature.exponent = std::max(signature.exponent, scale.exponent);
  }
  for (const Share& share : shares_of(call, operation.number_)) {
    Group& group = *rails_[share.rail].group;
    Call part = splits(call) ? part_of(call, share, table_.version()) : call;
    operation.parts_.push_back({share.rail, group.start(std::move(part))});
    ++states_[share.rail].parts;
    states_[share.rail].bytes += share.elements * kWireBytes;
  }
  operation.planned_.store(true, std::memory_order_release);
}

void RailSet::report(std::uint64_t number) {
  measure();
  auto report = std::make_shared<Report>();
  report->counts_at = number + kReportDelay;
  report->own = std::exchange(samples_, std::vector<RailSample>(rails_.size()));
  report->all.resize(rails_.size() * layout().ranks);
  Call call;
  call.signature.kind = Kind::kAllGather;
  call.signature.elements = report->own.size() * sizeof(RailSample);
  call.signature.tag = kReportTag;
  call.source = reinterpret_cast<const std::uint8_t*>(report->own.data());
  call.target = reinterpret_cast<std::uint8_t*>(report->all.data());
  report->gathering = rails_.front().group->start(std::move(call));
  reports_.push_back(std::move(report));
}

void RailSet::measure() {
  std::erase_if(measured_, [this](const std::shared_ptr<RailOperation>& operation) {
    if (!done(*operation)) return false;
    for (const auto& part : operation->parts_) {
      const CollectiveOutcome& outcome = part.operation->outcome;
      if (outcome.failure || part.operation->vectors < kLeastMeasured) continue;
      // What another rail has carried says nothing about this one.
      const bool own = states_[part.rail].health == Health::kUp;
      if (!own || operation->number_ < up_since_[part.rail]) continue;
      samples_[part.rail].add(part.operation->lanes * kWireBytes, outcome.latency - outcome.agreed,
                              static_cast<std::uint64_t>(outcome.agreed));
    }
    return true;
  });
}

bool RailSet::done(const RailOperation& operation) const {
  if (!operation.planned_.load(std::memory_order_acquire)) return false;
  return std::ranges::all_of(operation.parts_, [](const RailOperation::Part& part) {
    return part.operation->done.load(std::memory_order_acquire);
  });
}

bool RailSet::wait(RailOperation& operation, Nanos limit) {
  if (rails_.size() == 1) return rails_.front().group->wait(*operation.parts_[0].operation, limit);
  const Nanos began = monotonic_now();
  const Nanos until = limit > kNever - began ? kNever : began + limit;
  for (Nanos now = began; !done(operation); now = monotonic_now()) {
    if (now >= until) return false;
    if (!operation.planned_.load(std::memory_order_acquire)) {
      std::shared_ptr<Report> report;
      {
        std::unique_lock lock(mutex_);
        plan_waiting();
        if (operation.planned_.load()) continue;
        if (frozen_ || reports_.empty()) {
          thawed_.wait_for(lock, std::chrono::nanoseconds(std::min(until - now, kStay)));
          continue;
        }
        report = reports_.front();
      }
      rails_.front().group->wait(*report->gathering, std::min(until - now, kLongest));
      continue;
    }
    const auto left = std::ranges::count_if(
        operation.parts_, [](const auto& part) { return !part.operation->done.load(); });
    for (const auto& part : operation.parts_) {
      const Nanos most = std::min(until - now, left > 1 ? kSlice : kStay);
      if (!part.operation->done.load()) rails_[part.rail].group->wait(*part.operation, most);
    }
  }
  return true;
}

bool RailSet::cancel(RailOperation& operation) {
  if (!operation.planned_.load(std::memory_order_acquire)) return false;
  bool any = false;
  for (const auto& part : operation.parts_) {
    any = rails_[part.rail].group->cancel(*part.operation) || any;
  }
  return any;
}

CollectiveOutcome RailSet::outcome(const RailOperation& operation) {
  if (rails_.size() == 1) return operation.parts_.front().operation->outcome;
  const std::scoped_lock lock(mutex_);
  CollectiveOutcome whole;
  whole.failure = operation.refused_;
  for (const auto& part : operation.parts_) {
    const CollectiveOutcome& outcome = part.operation->outcome;
    if (outcome.failure && !whole.failure) {
      whole.failure = on_rail(*outcome.failure, rails_[part.rail].name);
      const bool cut = outcome.failure->kind == "unreachable" || outcome.failure->kind == "missing";
      if (cut && apart_) whole.failure = apart_;
      if (broken_ && outcome.failure->message == broken_->message) whole.failure = broken_;
    }
    whole.latency = std::max(whole.latency, outcome.latency);
    whole.vectors += outcome.vectors;
    whole.retransmissions += outcome.retransmissions;
    whole.saturated += outcome.saturated;
    whole.nonfinite += outcome.nonfinite;
    whole.any_saturated = whole.any_saturated || outcome.any_saturated;
    whole.exponent = std::max(whole.exponent, outcome.exponent);
  }
  return whole;
}

std::optional<CollectiveFailure> RailSet::failure() {
  {
    const std::scoped_lock lock(mutex_);
    if (broken_) return broken_;
  }
  for (const Rail& rail : rails_) {
    if (auto failure = rail.group->failure()) return on_rail(std::move(*failure), rail.name);
  }
  return std::nullopt;
}

std::vector<RailState> RailSet::states() {
  const std::scoped_lock lock(mutex_);
  std::vector<RailState> states = states_;
  for (std::size_t rail = 0; rail < states.size(); ++rail) states[rail].cost = table_.costs()[rail];
  return states;
}

std::uint32_t RailSet::table_version() {
  const std::scoped_lock lock(mutex_);
  return table_.version();
}

// Operations that wait for a report begin even if nobody waits for them.
void RailSet::run() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    plan_waiting();
    if (waiting_.empty() || frozen_ || reports_.empty()) {
      stirred_.wait(lock);
      continue;
    }
    const std::shared_ptr<Report> report = reports_.front();
    lock.unlock();
    rails_.front().group->wait(*report->gathering, kStay);
    lock.lock();
  }
}

std::uint64_t RailSet::freeze() {
  const std::scoped_lock lock(mutex_);
  frozen_ = true;
  return waiting_.empty() ? started_ : waiting_.front()->number_;
}

void RailSet::decided(const Verdict& verdict, const RailHealth& health) {
  for (std::uint32_t rail = 0; verdict.changed && rail < rails_.size(); ++rail) {
    const std::uint32_t carrier = health.carrier(rail);
    const Nanos waited = rails_[rail].group->stalled_for();
    std::uint32_t& now = states_[rail].carrier;  // which no other thread changes
    auto& ways = rails_[rail].ways;
    if (carrier == now || ways.size() != rails_.size()) continue;
    if (!rails_[rail].group->move(ways[now], ways[carrier])) continue;
    const std::scoped_lock lock(mutex_);
    now = carrier;
    if (carrier == rail) continue;
    ++states_[rail].incidents;
    states_[rail].last_incident = waited;
  }
  {
    const std::scoped_lock lock(mutex_);
    frozen_ = false;
    apart_.reset();
    if (verdict.changed) changes_.push_back({verdict.from, verdict.up});
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
      states_[rail].health = health.of(rail);
    }
    if (verdict.strangers != 0 && !broken_) {
      broken_ = {.kind = "mismatch",
                 .message = ranks_in(verdict.strangers) +
                            ": other rails, rates or another policy than rank 0 has",
                 .hint = "all ranks must name the same rails in the same order, and one policy",
                 .peers = verdict.strangers,
                 .seq = std::nullopt,
                 .fatal = true};
    }
    plan_waiting();
  }
  thawed_.notify_all();
  stirred_.notify_one();
}

void RailSet::fail_all(const CollectiveFailure& failure) {
  {
    const std::scoped_lock lock(mutex_);
    if (broken_) return;
    broken_ = failure;
    plan_waiting();
  }
  for (const Rail& rail : rails_) rail.group->fail(failure);
  thawed_.notify_all();
}

void RailSet::overdue(const std::vector<std::uint32_t>& silent, Nanos away) {
  if (absent_ != 0 && away >= absent_) {
    CollectiveFailure failure{.kind = "unreachable",
                              .message = "no rail has a switch that answers:",
                              .hint = "are the switches running, and this host's links up?",
                              .peers = 0,
                              .seq = std::nullopt,
                              .fatal = true};
    for (const Rail& rail : rails_) {
      failure.message += (&rail == &rails_.front() ? " " : ", ") + rail.name;
    }
    fail_all(failure);
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    apart_.reset();
    if (std::ranges::find(silent, 0U) == silent.end()) apart_ = nothing_joins(silent);
    if (waiting_.empty() || broken_) return;
    const RailOperation& first = *waiting_.front();
    const Nanos limit = first.call_.timeout != 0 ? first.call_.timeout : timeout_;
    if (monotonic_now() - first.started_at_ < limit) return;
    broken_ = apart_;
    if (!broken_) {
      broken_ = {.kind = "missing",
                 .message = "the ranks have not agreed within the timeout which rails they use",
                 .hint = "has a rank been stopped, or does its machine have too much to do?",
                 .peers = 0,
                 .seq = std::nullopt,
                 .fatal = true};
    }
    plan_waiting();
  }
  thawed_.notify_all();
}

CollectiveFailure RailSet::nothing_joins(const std::vector<std::uint32_t>& silent) const {
  CollectiveFailure failure{.kind = "missing",
                            .message = "no rail joins all ranks",
                            .hint = "have ranks ended, or have links of all rails failed?",
                            .peers = 0,
                            .seq = std::nullopt,
                            .fatal = true};
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
    failure.message += (rail == 0 ? ": on rail " : "; on rail ") + rails_[rail].name + " " +
                       ranks_in(silent[rail]) + " cannot be heard";
    failure.peers |= silent[rail];
  }
  return failure;
}

Nanos RailSet::stalled_for() {
  Nanos longest = 0;
  for (const Rail& rail : rails_) longest = std::max(longest, rail.group->stalled_for());
  return longest;
}

void RailSet::close(Nanos linger) {
  const std::scoped_lock ending(ending_);
  // The council serves until the operations have settled: a rail may fail at the very end.
  for (const Rail& rail : rails_) rail.group->close(linger);
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    if (!broken_) {
      broken_ = {.kind = "closed",
                 .message = "the communicator is closed",
                 .hint = "make a new one",
                 .peers = 0,
                 .seq = std::nullopt,
                 .fatal = true};
    }
    plan_waiting();
  }
  stirred_.notify_one();
  thawed_.notify_all();
  thread_.join();
  if (council_) council_->close(linger);
}

}  // namespace catchment::host::rails
