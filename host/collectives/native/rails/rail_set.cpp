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

// The tag of a part: ranks that split differently disagree about it.
std::uint32_t tag_of(std::uint32_t tag, std::uint32_t version, const Share& share) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint64_t word : {std::uint64_t{tag}, std::uint64_t{version}, share.first}) {
    hash = (hash ^ word) * 0x100000001b3ULL;
    hash ^= hash >> 29;
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

RailSet::RailSet(std::vector<Rail> rails, Policy policy)
    : rails_(std::move(rails)),
      policy_(policy),
      table_(beliefs(rails_)),
      samples_(rails_.size()),
      states_(rails_.size()) {
  if (rails_.size() > 1) thread_ = std::thread([this] { run(); });
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
  if (!splits(call)) {
    // What is not split still goes where it is there first; nothing but its size decides.
    const std::uint64_t size = std::max<std::uint64_t>(elements, 1);
    auto shares = split(table_.costs(), table_.together_ns(), Policy::kSingle, size);
    shares.front().elements = elements;
    return shares;
  }
  const std::uint64_t tried = kLeastMeasured * layout().lanes;
  const std::uint64_t sample = (tried + kGranule - 1) / kGranule * kGranule;
  const bool explores = number % kExploreEvery == kExploreEvery - 1 && measures(policy_) &&
                        elements >= kLeastExplored * sample;
  if (!explores) return split(table_.costs(), table_.together_ns(), policy_, elements);
  const std::uint64_t kept = (elements - sample) / kGranule * kGranule;
  auto shares = split(table_.costs(), table_.together_ns(), policy_, kept);
  std::vector<std::uint32_t> idle;
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if (std::ranges::find(shares, rail, &Share::rail) == shares.end()) idle.push_back(rail);
  }
  if (idle.empty()) return split(table_.costs(), table_.together_ns(), policy_, elements);
  shares.push_back({idle[number / kExploreEvery % idle.size()], kept, elements - kept});
  return shares;
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
        const std::scoped_lock lock(mutex_);
        plan_waiting();
        if (!operation.planned_.load()) report = reports_.front();
      }
      if (report) rails_.front().group->wait(*report->gathering, std::min(until - now, kLongest));
      continue;
    }
    const auto left = std::ranges::count_if(
        operation.parts_, [](const auto& part) { return !part.operation->done.load(); });
    for (const auto& part : operation.parts_) {
      const Nanos most = left > 1 ? std::min(until - now, kSlice) : until - now;
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

CollectiveOutcome RailSet::outcome(const RailOperation& operation) const {
  if (rails_.size() == 1) return operation.parts_.front().operation->outcome;
  CollectiveOutcome whole;
  for (const auto& part : operation.parts_) {
    const CollectiveOutcome& outcome = part.operation->outcome;
    if (outcome.failure && !whole.failure) {
      whole.failure = on_rail(*outcome.failure, rails_[part.rail].name);
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

std::optional<CollectiveFailure> RailSet::failure() const {
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
    if (waiting_.empty()) {
      stirred_.wait(lock);
      continue;
    }
    const std::shared_ptr<Report> report = reports_.front();
    lock.unlock();
    rails_.front().group->wait(*report->gathering, kLongest);
    lock.lock();
  }
}

void RailSet::close(Nanos linger) {
  const std::scoped_lock ending(ending_);
  for (const Rail& rail : rails_) rail.group->close(linger);
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    plan_waiting();  // to fail: the reports have
  }
  stirred_.notify_one();
  thread_.join();
}

}  // namespace catchment::host::rails
