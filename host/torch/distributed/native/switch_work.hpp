// A collective in flight, as torch wants it: wait, poll, or a future.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "completions.hpp"
#include "flight.hpp"
#include "held.hpp"

namespace catchment::torch_group {

// Makes Python's CollectiveError of a Failure and an operation's name.
using Explain = std::shared_ptr<Held>;

class SwitchWork final : public c10d::Work {
 public:
  // `span`: what torch.profiler calls the time from the start to the end of the first wait.
  // `result`: the tensors that hold the outcome.
  SwitchWork(int rank, c10d::OpType type, const std::string& span, std::vector<at::Tensor> result,
             std::shared_ptr<Flight> flight, Explain explain,
             std::shared_ptr<Completions> completions);
  ~SwitchWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  // A timeout of 0 is none. Python gets a TimeoutError, and the operation goes on, or the failure
  // as a CollectiveError.
  bool wait(std::chrono::milliseconds timeout) override;
  // Completed by the group's thread, with the tensors or an error of the failure's text.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  [[noreturn]] void raise(const Failure& failure) const;
  void end_span();

  std::vector<at::Tensor> result_;
  std::shared_ptr<Flight> flight_;
  Explain explain_;
  std::shared_ptr<Completions> completions_;
  std::mutex making_future_;
  std::mutex ending_span_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace catchment::torch_group
