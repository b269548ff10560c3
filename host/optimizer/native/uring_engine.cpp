#include <liburing.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "catchment/common/file_descriptor.hpp"
#include "io_engine.hpp"

namespace catchment::optimizer {
namespace {

constexpr std::uint64_t kWakeToken = ~std::uint64_t{0};

class UringEngine final : public IoEngine {
 public:
  UringEngine(int descriptor, unsigned depth)
      : descriptor_(descriptor), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd") {
    const int result = io_uring_queue_init(depth + 1, &ring_, 0);
    if (result < 0) throw std::system_error(-result, std::generic_category(), "io_uring_setup");
    watch();
  }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;
  ~UringEngine() override { io_uring_queue_exit(&ring_); }

  void start(std::size_t token, const Operation& operation) override {
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
    pending_ = true;
  }

  std::optional<OperationDone> next(std::chrono::nanoseconds timeout) override {
    if (pending_) {
      io_uring_submit(&ring_);
      pending_ = false;
    }
    for (;;) {
      io_uring_cqe* completion = nullptr;
      if (io_uring_peek_cqe(&ring_, &completion) != 0 && !await(timeout, completion)) return {};
      const std::uint64_t token = io_uring_cqe_get_data64(completion);
      const std::int64_t result = completion->res;
      io_uring_cqe_seen(&ring_, completion);
      if (token != kWakeToken) return OperationDone{static_cast<std::size_t>(token), result};
      watch();
      return {};
    }
  }

  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  }

 private:
  bool await(std::chrono::nanoseconds timeout, io_uring_cqe*& completion) {
    __kernel_timespec limit{};
    limit.tv_sec = timeout.count() / 1'000'000'000;
    limit.tv_nsec = timeout.count() % 1'000'000'000;
    return io_uring_wait_cqe_timeout(&ring_, &completion, &limit) == 0;
  }

  // Asks for a completion when wake() is called.
  void watch() {
    std::uint64_t drained = 0;
    while (::read(wake_.get(), &drained, sizeof drained) > 0) {
    }
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    io_uring_prep_poll_add(entry, wake_.get(), POLL_IN);
    io_uring_sqe_set_data64(entry, kWakeToken);
    io_uring_submit(&ring_);
  }

  int descriptor_;
  FileDescriptor wake_;
  io_uring ring_{};
  bool pending_ = false;
};

}  // namespace

std::unique_ptr<IoEngine> make_uring_engine(int descriptor, unsigned depth) {
  return std::make_unique<UringEngine>(descriptor, depth);
}

}  // namespace catchment::optimizer
