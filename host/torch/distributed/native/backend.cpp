#include "backend.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace catchment::torch_group {
namespace {

using Tensors = SwitchBackend::Tensors;

// The C library's type of what is added; none: the switch does not add these.
std::optional<catchment_type> addend(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return CATCHMENT_FP32;
    case at::kHalf:
      return CATCHMENT_FP16;
    case at::kBFloat16:
      return CATCHMENT_BF16;
    case at::kInt:
      return CATCHMENT_INT32;
    default:
      return std::nullopt;
  }
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == at::kStrided && tensor.is_contiguous() &&
         !tensor.is_conj() && !tensor.is_neg();
}

// Whether a rank's part lies apart from the memory of all ranks' parts, or where its own one is
// there; anywhere else the result would be written over what is yet to be sent.
bool is_apart(const at::Tensor& whole, const at::Tensor& part, int rank) {
  const auto first = reinterpret_cast<std::intptr_t>(part.data_ptr()) -
                     reinterpret_cast<std::intptr_t>(whole.data_ptr());
  const auto bytes = static_cast<std::intptr_t>(part.nbytes());
  return first <= -bytes || first >= static_cast<std::intptr_t>(whole.nbytes()) ||
         first == rank * bytes;
}

// The reduction of these tensors, if it is one that C++ starts by itself.
std::optional<catchment_reduction> reduction_of(const c10d::ReduceOp& op, const Tensors& tensors) {
  const bool mean = op == c10d::ReduceOp::AVG;
  if (!mean && op != c10d::ReduceOp::SUM) return std::nullopt;
  for (const at::Tensor& tensor : tensors) {
    const auto type = addend(tensor);
    if (!type || !is_plain(tensor) || (mean && *type == CATCHMENT_INT32)) return std::nullopt;
  }
  return mean ? CATCHMENT_MEAN : CATCHMENT_SUM;
}

std::string in_words(const char* operation, const at::Tensor& tensor) {
  return std::string(operation) + "(" + std::to_string(tensor.numel()) + " x " +
         c10::toString(tensor.scalar_type()) + ")";
}

}  // namespace

SwitchBackend::SwitchBackend(int rank, catchment_group* group, GroupOptions options,
                             py::object python, py::object explain)
    : Backend(rank, static_cast<int>(options.workers.size())),
      group_(group),
      options_(std::move(options)),
      same_order_(std::is_sorted(options_.workers.begin(), options_.workers.end())),
      python_(std::make_shared<Held>(std::move(python))),
      explain_(std::make_shared<Held>(std::move(explain))) {}

SwitchBackend::Started SwitchBackend::start(c10d::OpType type, std::string name,
                                            const std::vector<Call>& calls, Tensors tensors,
                                            const Tensors& more,
                                            std::chrono::milliseconds timeout) {
  if (catchment_group_forked(group_) != 0) {
    const py::gil_scoped_acquire gil;
    python_->get().attr("check_process")();
  }
  Tensors kept = tensors;
  kept.insert(kept.end(), more.begin(), more.end());
  auto flight = std::make_shared<Flight>(std::move(name), std::move(kept));
  // Freed after the lock: the last reference to a tensor may need the GIL.
  std::vector<std::shared_ptr<Flight>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (const Call& call : calls) {
      const bool scaled = call.type >= CATCHMENT_FP32 && call.reduction != CATCHMENT_MAX;
      const catchment_call asked{
          .kind = call.kind,
          .reduction = call.reduction,
          .type = call.type,
          .scaling = scaled ? options_.scaling : CATCHMENT_NONE,
          .exponent = scaled ? options_.exponent : 0,
          .root = call.root,
          .priority = 0,
          .tag = 0,
          .elements = call.elements,
          .source = call.source,
          .target = call.target,
          .timeout_ns = std::max<std::int64_t>(
              0, std::chrono::nanoseconds(std::min(timeout, kLongest)).count()),
          .step = 0,
          .block = 0,
          .blocks = 0,
          .stride = 0,
          .packed = scaled && options_.packed ? 1 : 0};
      flight->add(catchment_group_start(group_, &asked));
    }
    ++operations_;
    while (!pending_.empty() && pending_.front()->done()) {
      ended.push_back(std::move(pending_.front()));
      pending_.pop_front();
    }
    pending_.push_back(flight);
  }
  const std::string span = "catchment:" + flight->name().substr(0, flight->name().find('('));
  return c10::make_intrusive<SwitchWork>(rank_, type, span, std::move(tensors), std::move(flight),
                                         explain_, completions_);
}

SwitchBackend::Started SwitchBackend::reduced(c10d::OpType type, const Tensors& tensors,
                                              catchment_reduction reduction,
                                              std::chrono::milliseconds timeout) {
  std::vector<Call> calls;
  for (const at::Tensor& tensor : tensors) {
    calls.push_back({.kind = CATCHMENT_ALL_REDUCE,
                     .reduction = reduction,
                     .type = *addend(tensor),
                     .elements = static_cast<std::uint64_t>(tensor.numel()),
                     .source = tensor.data_ptr(),
                     .target = tensor.data_ptr()});
  }
  return start(type, in_words("all_reduce", tensors.at(0)), calls, tensors, {}, timeout);
}

SwitchBackend::Started SwitchBackend::allreduce(Tensors& tensors,
                                                const c10d::AllreduceOptions& opts) {
  const auto reduction = reduction_of(opts.reduceOp, tensors);
  if (!reduction || tensors.empty()) return by_python("allreduce", tensors, opts);
  return reduced(c10d::OpType::ALLREDUCE, tensors, *reduction, opts.timeout);
}

SwitchBackend::Started SwitchBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  const auto reduction = reduction_of(opts.reduceOp, tensors);
  if (!reduction || tensors.size() != 1) return by_python("allreduce_coalesced", tensors, opts);
  return reduced(c10d::OpType::ALLREDUCE_COALESCED, tensors, *reduction, opts.timeout);
}

SwitchBackend::Started SwitchBackend::allreduce_sparse(Tensors& tensors,
                                                       const c10d::AllreduceOptions& opts) {
  return by_python("allreduce", tensors, opts);
}

SwitchBackend::Started SwitchBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  const auto reduction = reduction_of(opts.reduceOp, tensors);
  if (!reduction || tensors.size() != 1 || !is_rank(opts.rootRank)) {
    return by_python("reduce", tensors, opts);
  }
  const at::Tensor& tensor = tensors.front();
  return start(c10d::OpType::REDUCE, in_words("reduce", tensor),
               {{.kind = CATCHMENT_REDUCE,
                 .reduction = *reduction,
                 .type = *addend(tensor),
                 .root = options_.workers.at(opts.rootRank),
                 .elements = static_cast<std::uint64_t>(tensor.numel()),
                 .source = tensor.data_ptr(),
                 .target = tensor.data_ptr()}},
               tensors, {}, opts.timeout);
}

SwitchBackend::Started SwitchBackend::broadcast(Tensors& tensors,
                                                const c10d::BroadcastOptions& opts) {
  if (tensors.empty() || !is_rank(opts.rootRank) ||
      !std::all_of(tensors.begin(), tensors.end(), is_plain)) {
    return by_python("broadcast", tensors, opts);
  }
  std::vector<Call> calls;
  for (const at::Tensor& tensor : tensors) {
    calls.push_back({.kind = CATCHMENT_BROADCAST,
                     .root = options_.workers.at(opts.rootRank),
                     .elements = tensor.nbytes(),
                     .source = tensor.data_ptr(),
                     .target = tensor.data_ptr()});
  }
  return start(c10d::OpType::BROADCAST, in_words("broadcast", tensors.front()), calls, tensors, {},
               opts.timeout);
}

SwitchBackend::Started SwitchBackend::barrier(const c10d::BarrierOptions& opts) {
  return start(c10d::OpType::BARRIER, "barrier()", {{.kind = CATCHMENT_BARRIER}}, {}, {},
               opts.timeout);
}

SwitchBackend::Started SwitchBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::AllgatherOptions& opts) {
  if (!same_order_ || !is_plain(output) || !is_plain(input) || output.dtype() != input.dtype() ||
      output.numel() != input.numel() * size_ || !is_apart(output, input, rank_)) {
    return by_python("all_gather_single", output, input, opts);
  }
  return start(c10d::OpType::_ALLGATHER_BASE, in_words("all_gather", input),
               {{.kind = CATCHMENT_ALL_GATHER,
                 .elements = input.nbytes(),
                 .source = input.data_ptr(),
                 .target = output.data_ptr()}},
               {output}, {input}, opts.timeout);
}

SwitchBackend::Started SwitchBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                           const c10d::ReduceScatterOptions& opts) {
  const auto reduction = reduction_of(opts.reduceOp, {output, input});
  if (!reduction || !same_order_ || output.dtype() != input.dtype() ||
      input.numel() != output.numel() * size_ || !is_apart(input, output, rank_)) {
    return by_python("reduce_scatter_single", output, input, opts);
  }
  return start(c10d::OpType::_REDUCE_SCATTER_BASE, in_words("reduce_scatter", input),
               {{.kind = CATCHMENT_REDUCE_SCATTER,
                 .reduction = *reduction,
                 .type = *addend(input),
                 .elements = static_cast<std::uint64_t>(input.numel()),
                 .source = input.data_ptr(),
                 .target = output.data_ptr()}},
               {output}, {input}, opts.timeout);
}

uint64_t SwitchBackend::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return operations_;
}

}  // namespace catchment::torch_group
