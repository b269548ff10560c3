#include "switch_work.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace catchment::torch_group {
namespace {

constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(100);

py::object explained(const Explain& explain, const Flight& flight, const Failure& failure) {
  return explain->get()(failure.message, py::arg("kind") = failure.kind,
                        py::arg("operation") = flight.name(), py::arg("peers") = failure.peers,
                        py::arg("seq") = failure.seq, py::arg("hint") = failure.hint,
                        py::arg("fatal") = failure.fatal);
}

// Completes the future, on a thread of the group. An exception of C++ may be thrown again and
// again, a Python exception may not.
void complete(const Flight& flight, const std::vector<at::Tensor>& result, const Explain& explain,
              const c10::intrusive_ptr<c10::ivalue::Future>& future) {
  const std::optional<Failure> failure = flight.failure();
  if (!failure) {
    future->markCompleted(c10::IValue(result));
    return;
  }
  std::string text = failure->message;
  if (Py_IsInitialized() != 0) {
    const py::gil_scoped_acquire gil;
    try {
      text = py::str(explained(explain, flight, *failure));
    } catch (py::error_already_set& error) {
      text += std::string(" (") + error.what() + ")";
    }
  }
  future->setError(std::make_exception_ptr(std::runtime_error(text)));
}

// Lets Python's signal handlers run (Ctrl-C).
void check_signals() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

SwitchWork::SwitchWork(int rank, c10d::OpType type, const std::string& span,
                       std::vector<at::Tensor> result, std::shared_ptr<Flight> flight,
                       Explain explain, std::shared_ptr<Completions> completions)
    : Work(rank, type, span.c_str(), result),
      result_(std::move(result)),
      flight_(std::move(flight)),
      explain_(std::move(explain)),
      completions_(std::move(completions)) {}

SwitchWork::~SwitchWork() { end_span(); }

void SwitchWork::end_span() {
  const std::lock_guard lock(ending_span_);
  if (recordFunctionEndCallback_) std::exchange(recordFunctionEndCallback_, nullptr)();
}

bool SwitchWork::isCompleted() { return flight_->done(); }

bool SwitchWork::isSuccess() const { return flight_->done() && !flight_->failure(); }

std::exception_ptr SwitchWork::exception() const {
  if (!flight_->done()) return nullptr;
  const std::optional<Failure> failure = flight_->failure();
  if (!failure) return nullptr;
  try {
    raise(*failure);
  } catch (...) {
    return std::current_exception();
  }
}

std::vector<at::Tensor> SwitchWork::result() { return result_; }

void SwitchWork::synchronize() { wait(kNoTimeout); }

bool SwitchWork::wait(std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const bool forever = timeout.count() <= 0;
  const auto until = Clock::now() + std::min(timeout, kLongest);
  while (true) {
    const std::chrono::nanoseconds left = forever ? kSlice : until - Clock::now();
    if (flight_->wait(std::clamp(left, std::chrono::nanoseconds(0), kSlice).count())) break;
    if (!forever && Clock::now() >= until) {
      const py::gil_scoped_acquire gil;
      const std::string text = flight_->name() + " is not done after " +
                               std::to_string(timeout.count()) + " ms; it goes on";
      PyErr_SetString(PyExc_TimeoutError, text.c_str());
      throw py::error_already_set();
    }
    check_signals();
  }
  end_span();
  flight_->put_down();
  if (const std::optional<Failure> failure = flight_->failure()) raise(*failure);
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> SwitchWork::getFuture() {
  const std::lock_guard lock(making_future_);
  if (!future_) {
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    completions_->follow(
        [flight = flight_] {
          while (!flight->wait(kSlice.count())) {
          }
        },
        [flight = flight_, result = result_, explain = explain_, future = future_] {
          flight->put_down();
          complete(*flight, result, explain, future);
        });
  }
  return future_;
}

void SwitchWork::raise(const Failure& failure) const {
  const py::gil_scoped_acquire gil;
  const py::object error = explained(explain_, *flight_, failure);
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace catchment::torch_group
