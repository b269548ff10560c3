#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <system_error>

#include "catchment/common/file_descriptor.hpp"
#include "io_engine.hpp"

namespace catchment::optimizer {
namespace {

// How long until the kernel is asked again to take what it had no room for.
constexpr std::chrono::nanoseconds kRetry = std::chrono::milliseconds(1);

// Whether an error of io_uring_submit is one of the moment: it took nothing, and may take it later.
bool passes(int error) { return error == -EAGAIN || error == -EBUSY || error == -EINTR; }

class UringEngine final : public IoEngine {
 public:
  UringEngine(int descriptor, unsigned depth)
      : descriptor_(descriptor), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd") {
    const int result = io_uring_queue_init(depth, &ring_, 0);
    if (result < 0) throw std::system_error(-result, std::generic_category(), "io_uring_setup");
  }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;
  ~UringEngine() override { io_uring_queue_exit(&ring_); }

  void start(std::size_t token, const Operation& operation) override {
    if (refusal_ == 0) prepare(token, operation);
    untaken_.push_back(token);
  }

  std::optional<OperationDone> next(std::chrono::nanoseconds timeout) override {
    submit();
    if (refusal_ != 0 && !untaken_.empty()) {
      const std::size_t token = untaken_.front();
      untaken_.pop_front();
      return OperationDone{token, refusal_};
    }
    io_uring_cqe* completion = nullptr;
    if (io_uring_peek_cqe(&ring_, &completion) != 0) {
      await(untaken_.empty() ? timeout : std::min(timeout, kRetry));
      if (io_uring_peek_cqe(&ring_, &completion) != 0) return {};
    }
    const auto token = static_cast<std::size_t>(io_uring_cqe_get_data64(completion));
    const std::int64_t result = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    return OperationDone{token, result};
  }

  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  }

 private:
  void prepare(std::size_t token, const Operation& operation) {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    const auto length = static_cast<unsigned>(operation.length);
    switch (operation.action) {
      case Action::kRead:
        io_uring_prep_read(entry, descriptor_, operation.address, length, operation.offset);
        break;
      case Action::kWrite:
        io_uring_prep_write(entry, descriptor_, operation.address, length, operation.offset);
        break;
      case Action::kSync:
        io_uring_prep_fsync(entry, descriptor_, IORING_FSYNC_DATASYNC);
        break;
    }
    io_uring_sqe_set_data64(entry, token);
  }

  // The kernel takes entries in their order, and perhaps not all of them: the others stay in the
  // ring for the next call.  After an error that does not pass nothing is submitted any more, since
  // what stays in the ring has failed.
  void submit() {
    while (refusal_ == 0 && !untaken_.empty()) {
      const int taken = io_uring_submit(&ring_);
      if (taken < 0 && !passes(taken)) refusal_ = taken;
      if (taken <= 0) return;
      untaken_.erase(untaken_.begin(), untaken_.begin() + taken);
    }
  }

  // Waits for a completion or wake(); submits nothing, as io_uring_wait_cqe_timeout may do.
  void await(std::chrono::nanoseconds timeout) {
    std::array<pollfd, 2> ends{{{ring_.ring_fd, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    timespec limit{};
    limit.tv_sec = timeout.count() / 1'000'000'000;
    limit.tv_nsec = timeout.count() % 1'000'000'000;
    if (::ppoll(ends.data(), ends.size(), &limit, nullptr) <= 0 || ends[1].revents == 0) return;
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto bytes = ::read(wake_.get(), &drained, sizeof drained);
  }

  int descriptor_;
  FileDescriptor wake_;
  io_uring ring_{};
  std::deque<std::size_t> untaken_;  // tokens of operations that the kernel has not taken yet
  int refusal_ = 0;                  // the error after which it takes nothing any more
};

}  // namespace

std::unique_ptr<IoEngine> make_uring_engine(int descriptor, unsigned depth) {
  return std::make_unique<UringEngine>(descriptor, depth);
}

}  // namespace catchment::optimizer
