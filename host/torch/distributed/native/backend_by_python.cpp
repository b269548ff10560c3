// What the C++ process group leaves to the one in Python.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/PyProcessGroup.hpp>
#include <utility>

#include "backend.hpp"

namespace catchment::torch_group {

using Started = SwitchBackend::Started;

namespace {

// A work of a Python class, which has the lifetime of its Python object; torch's own holder would
// never say that it is done.
class PythonWork final : public c10d::Work {
 public:
  PythonWork(Started work, py::object object)
      : work_(std::move(work)), object_(std::move(object)) {}

  bool isCompleted() override { return asked<bool>("is_completed"); }
  bool isSuccess() const override { return asked<bool>("is_success"); }
  std::exception_ptr exception() const override {
    const py::gil_scoped_acquire gil;
    const py::object error = object_.get().attr("exception")();
    if (error.is_none()) return nullptr;
    return std::make_exception_ptr(std::runtime_error(py::str(error)));
  }
  std::vector<at::Tensor> result() override { return asked<std::vector<at::Tensor>>("result"); }
  void synchronize() override { work_->wait(kNoTimeout); }
  bool wait(std::chrono::milliseconds timeout) override { return work_->wait(timeout); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return work_->getFuture(); }
  int sourceRank() const override { return asked<int>("_source_rank"); }

 private:
  template <class Answer>
  Answer asked(const char* method) const {
    const py::gil_scoped_acquire gil;
    return object_.get().attr(method)().template cast<Answer>();
  }

  Started work_;
  Held object_;
};

}  // namespace

template <class... Arguments>
Started SwitchBackend::by_python(const char* method, Arguments&&... arguments) {
  const py::gil_scoped_acquire gil;
  py::object work = python_->get().attr(method)(std::forward<Arguments>(arguments)...);
  auto known = work.cast<Started>();
  if (dynamic_cast<c10d::PyProcessGroup::PyWork*>(known.get()) == nullptr) return known;
  return c10::make_intrusive<PythonWork>(std::move(known), std::move(work));
}

template Started SwitchBackend::by_python(const char*, Tensors&, const c10d::AllreduceOptions&);
template Started SwitchBackend::by_python(const char*, Tensors&,
                                          const c10d::AllreduceCoalescedOptions&);
template Started SwitchBackend::by_python(const char*, Tensors&, const c10d::ReduceOptions&);
template Started SwitchBackend::by_python(const char*, Tensors&, const c10d::BroadcastOptions&);
template Started SwitchBackend::by_python(const char*, at::Tensor&, at::Tensor&,
                                          const c10d::AllgatherOptions&);
template Started SwitchBackend::by_python(const char*, at::Tensor&, at::Tensor&,
                                          const c10d::ReduceScatterOptions&);

Started SwitchBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                 const c10d::AllgatherOptions& opts) {
  return by_python("allgather", outputs, inputs, opts);
}

Started SwitchBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                           const c10d::AllgatherOptions& opts) {
  return by_python("allgather_coalesced", outputs, inputs, opts);
}

Started SwitchBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                       const c10d::AllgatherOptions& opts) {
  return by_python("all_gather_single_coalesced", outputs, inputs, opts);
}

Started SwitchBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                      const c10d::ReduceScatterOptions& opts) {
  return by_python("reduce_scatter", outputs, inputs, opts);
}

Started SwitchBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                       const c10d::ReduceScatterOptions& opts) {
  return by_python("reduce_scatter_single_coalesced", outputs, inputs, opts);
}

Started SwitchBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::GatherOptions& opts) {
  return by_python("gather", outputs, inputs, opts);
}

Started SwitchBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                               const c10d::ScatterOptions& opts) {
  return by_python("scatter", outputs, inputs, opts);
}

Started SwitchBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                     std::vector<int64_t>& output_sizes,
                                     std::vector<int64_t>& input_sizes,
                                     const c10d::AllToAllOptions& opts) {
  return by_python("all_to_all_single", output, input, output_sizes, input_sizes, opts);
}

Started SwitchBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                const c10d::AllToAllOptions& opts) {
  return by_python("alltoall", outputs, inputs, opts);
}

Started SwitchBackend::send(Tensors& tensors, int destination, int tag) {
  return by_python("send", tensors, destination, tag);
}

Started SwitchBackend::recv(Tensors& tensors, int source, int tag) {
  return by_python("recv", tensors, source, tag);
}

Started SwitchBackend::recvAnysource(Tensors& tensors, int tag) {
  return by_python("recv_anysource", tensors, tag);
}

void SwitchBackend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  const py::gil_scoped_acquire gil;
  python_->get().attr("monitored_barrier")(opts.timeout, wait_all_ranks);
}

void SwitchBackend::shutdown() { end("shutdown"); }

void SwitchBackend::abort() { end("abort"); }

// Ends the group by its Python method; then every operation is done or has failed, so that the
// completion threads have nothing to wait for. Whether this thread has the GIL nobody can be asked:
// PyGILState_Check says yes to everybody once a process has had a second interpreter.
void SwitchBackend::end(const char* method) {
  const py::gil_scoped_acquire gil;
  python_->get().attr(method)();
  const py::gil_scoped_release no_gil;
  completions_->close();
}

}  // namespace catchment::torch_group
