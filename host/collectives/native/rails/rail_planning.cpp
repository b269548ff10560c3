// Which rails an operation goes over, and what the ranks report of what they cost.
#include <algorithm>
#include <utility>

#include "elementwise.hpp"
#include "mixing.hpp"
#include "rail_set.hpp"

namespace catchment::host::rails {
namespace {

// A report counts so many operations later, when it has usually come.
constexpr std::uint64_t kReportDelay = 16;
constexpr std::uint64_t kReportEvery = 100;
constexpr std::uint64_t kEarlyReports = 64;
// One operation of a class in so many tries what is not the best, so that a rail that has become
// faster is noticed, and earlier those after 3, 7, 15 and 31 do.
constexpr std::uint64_t kTryEvery = 64;
constexpr std::uint64_t kFirstTried = 3;
// A sample over a rail that is idle is of so many vectors, of an operation that is so many times
// as long.  Parts of fewer vectors tell no rate.
constexpr std::uint64_t kLeastMeasured = 32;
constexpr std::uint64_t kLeastSampled = 4;
// Samples of a rank in a report.
constexpr std::size_t kReported = 16;
// Splits that are kept until the table changes.
constexpr std::size_t kMostKept = 256;
constexpr std::uint32_t kReportTag = 0x7261696c;

bool measures(Policy policy) { return policy != Policy::kFixed && policy != Policy::kSlices; }

// Operations after which the ranks report: 2, 4, 8 .. 64, then every hundredth.
bool reports_after(std::uint64_t number) {
  if (number <= kEarlyReports) return number >= 2 && (number & (number - 1)) == 0;
  return number % kReportEvery == 0;
}

// What is measured: other operations of the same length take another time.
bool tells(const Call& call) {
  const Kind kind = call.signature.kind;
  return (kind == Kind::kAllReduce || kind == Kind::kReduce) && call.signature.elements != 0;
}

// Whether the operation of a class that comes after `before` others tries something.
bool tries(std::uint64_t before) {
  if (before % kTryEvery == kTryEvery - 1) return true;
  return before >= kFirstTried && before < kTryEvery && (before & (before + 1)) == 0;
}

// The tag of a part: ranks that split differently disagree about it.
std::uint32_t tag_of(std::uint32_t tag, std::uint32_t version, const Share& share) {
  std::uint64_t hash = kHashed;
  for (const std::uint64_t word : {std::uint64_t{tag}, std::uint64_t{version}, share.first}) {
    hash = mixed_in(hash, word);
  }
  return folded(hash);
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

}  // namespace

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
      kept_.clear();
    }
    while (!reports_.empty() && reports_.front()->counts_at <= operation->number_) {
      const Report& report = *reports_.front();
      if (!report.gathering->done.load(std::memory_order_acquire)) return;
      if (!report.gathering->outcome.failure) {
        table_.learn(report.all, kReported);
        kept_.clear();
      }
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

std::vector<Share> RailSet::shares_of(const Call& call) {
  const std::uint64_t elements = call.signature.elements;
  const bool whole = !splits(call);
  // What is not split still goes where it is there first; nothing but its size decides.
  const std::uint64_t size = std::max<std::uint64_t>(elements, 1);
  const Policy policy = whole ? Policy::kSingle : policy_;
  if (measures(policy_) && tells(call)) {
    Tries& tried_before = tries_[size_class(elements * kWireBytes)];
    if (tries(tried_before.operations++)) {
      const std::uint64_t tried_elements =
          kLeastMeasured * layout().lanes * elements_in_lane(call.signature);
      std::uint64_t sample = (tried_elements + kGranule - 1) / kGranule * kGranule;
      if (whole || elements < kLeastSampled * sample) sample = 0;
      auto shares = tried(usable_costs(up_, elements), table_.together_ns(), policy, elements,
                          sample, tried_before.turn++);
      if (!shares.empty()) return shares;
    }
  }
  std::vector<Share>& shares = kept_[{elements, whole}];
  if (shares.empty()) {
    shares = split(usable_costs(up_, size), table_.together_ns(), policy, size);
    if (whole) shares.front().elements = elements;
  }
  if (kept_.size() < kMostKept) return shares;
  std::vector<Share> last = std::move(shares);
  kept_.clear();
  return last;
}

std::vector<Share> RailSet::shares(std::uint64_t elements) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t up = changes_.empty() ? up_ : changes_.back().up;
  return split(usable_costs(up, elements), table_.together_ns(),
               elements > kGranule ? policy_ : Policy::kSingle, elements);
}

std::vector<RailCost> RailSet::costs(std::uint64_t elements) {
  const std::scoped_lock lock(mutex_);
  return table_.costs(elements * kWireBytes);
}

std::vector<RailCost> RailSet::usable_costs(std::uint32_t up, std::uint64_t elements) const {
  std::vector<RailCost> costs = table_.costs(elements * kWireBytes);
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if ((up >> rail & 1U) == 0) costs[rail].bytes_per_ms = 0;
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
  for (const Share& share : shares_of(call)) {
    Group& group = *rails_[share.rail].group;
    Call part = splits(call) ? part_of(call, share, table_.version()) : call;
    operation.parts_.push_back({share.rail, group.start(std::move(part))});
    ++states_[share.rail].parts;
    states_[share.rail].bytes += share.elements * kWireBytes / elements_in_lane(signature);
  }
  operation.planned_.store(true, std::memory_order_release);
}

void RailSet::report(std::uint64_t number) {
  measure();
  auto report = std::make_shared<Report>();
  report->counts_at = number + kReportDelay;
  report->own.resize(kReported);
  meter_.report(report->own);
  report->all.resize(kReported * layout().ranks);
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
    const std::uint64_t wire = operation->call_.signature.elements * kWireBytes;
    for (const auto& part : operation->parts_) {
      const CollectiveOutcome& outcome = part.operation->outcome;
      if (outcome.failure || !tells(operation->call_)) continue;
      // What another rail has carried says nothing about this one.
      const bool own = states_[part.rail].health == Health::kUp;
      if (!own || operation->number_ < up_since_[part.rail]) continue;
      const RailSample of{
          .rail = static_cast<std::uint8_t>(part.rail),
          .size_class = static_cast<std::uint8_t>(size_class(wire)),
          .beside = operation->parts_.size() > 1 ? std::uint8_t{1} : std::uint8_t{0}};
      const PartTimes times{.agreed_ns = static_cast<std::uint64_t>(outcome.agreed),
                            .latency_ns = static_cast<std::uint64_t>(outcome.latency)};
      const std::uint64_t bytes = part.operation->lanes * kWireBytes;
      if (part.operation->vectors >= kLeastMeasured) {
        meter_.add_long(of, bytes, times);
      } else {
        meter_.add_short(of, bytes, times, table_.costs(wire)[part.rail].bytes_per_ms);
      }
    }
    return true;
  });
}

}  // namespace catchment::host::rails
