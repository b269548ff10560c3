// The process group in C++: what a switch does with contiguous tensors goes straight to the
// collectives' C library; everything else to the Python process group behind it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "catchment_collectives.h"
#include "completions.hpp"
#include "flight.hpp"
#include "held.hpp"
#include "switch_work.hpp"

namespace catchment::torch_group {

// How a process group carries out its operations: how sums of floats are scaled, and which
// worker index each rank has.
struct GroupOptions {
  catchment_scaling scaling = CATCHMENT_BLOCK;
  int exponent = 0;
  bool packed = false;
  std::vector<int> workers;
};

class SwitchBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Started = c10::intrusive_ptr<c10d::Work>;

  // `group` has the lifetime of `python`, the process group in Python.
  SwitchBackend(int rank, catchment_group* group, GroupOptions options, py::object python,
                py::object explain);

  const std::string getBackendName() const override { return "catchment"; }
  py::object python() const { return python_->get(); }

  Started allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  Started allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& opts) override;
  Started allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  Started reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  Started broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  Started barrier(const c10d::BarrierOptions& opts) override;
  Started _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& opts) override;
  Started _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;

  // The process group in Python carries out the operations from here on.
  Started allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& opts) override;
  Started allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& opts) override;
  Started allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& opts) override;
  Started reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  Started reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& opts) override;
  Started gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& opts) override;
  Started scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& opts) override;
  Started alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes,
                        const c10d::AllToAllOptions& opts) override;
  Started alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;
  Started send(Tensors& tensors, int destination, int tag) override;
  Started recv(Tensors& tensors, int source, int tag) override;
  Started recvAnysource(Tensors& tensors, int tag) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

  // torch's debug mode numbers the operations.
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override;

  void shutdown() override;
  void abort() override;

 private:
  struct Call {
    catchment_kind kind = CATCHMENT_BARRIER;
    catchment_reduction reduction = CATCHMENT_SUM;
    catchment_type type = CATCHMENT_BYTES;
    int root = 0;
    std::uint64_t elements = 0;
    const void* source = nullptr;
    void* target = nullptr;
  };

  // `tensors` hold the outcome, `more` must only stay where it is.
  Started start(c10d::OpType type, std::string name, const std::vector<Call>& calls,
                Tensors tensors, const Tensors& more, std::chrono::milliseconds timeout);
  Started reduced(c10d::OpType type, const Tensors& tensors, catchment_reduction reduction,
                  std::chrono::milliseconds timeout);
  template <class... Arguments>
  Started by_python(const char* method, Arguments&&... arguments);
  void end(const char* method);
  bool is_rank(int root) const { return root >= 0 && root < size_; }

  catchment_group* group_;
  GroupOptions options_;
  bool same_order_;
  std::shared_ptr<Held> python_;
  Explain explain_;
  std::shared_ptr<Completions> completions_ = std::make_shared<Completions>();
  std::mutex mutex_;
  // A caller may drop a work, but not its tensors.
  std::deque<std::shared_ptr<Flight>> pending_;
  uint64_t operations_ = 0;
};

}  // namespace catchment::torch_group
