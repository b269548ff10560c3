#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "io_engine.hpp"

namespace catchment::optimizer {
namespace {

// Does each operation inside next(), in the order in which they were started.
class BlockingEngine final : public IoEngine {
 public:
  explicit BlockingEngine(int descriptor) : descriptor_(descriptor) {}

  void start(std::size_t token, const Operation& operation) override {
    queue_.push_back({token, operation});
  }

  std::optional<OperationDone> next(std::chrono::nanoseconds timeout) override {
    if (!queue_.empty()) {
      const Started started = queue_.front();
      queue_.pop_front();
      return OperationDone{started.token, perform(started.operation)};
    }
    std::unique_lock guard(lock_);
    woken_.wait_for(guard, timeout, [this] { return wake_; });
    wake_ = false;
    return {};
  }

  void wake() override {
    {
      const std::lock_guard guard(lock_);
      wake_ = true;
    }
    woken_.notify_one();
  }

 private:
  struct Started {
    std::size_t token;
    Operation operation;
  };

  std::int64_t perform(const Operation& operation) const {
    std::int64_t result = 0;
    const auto offset = static_cast<off_t>(operation.offset);
    switch (operation.action) {
      case Action::kRead:
        result = ::pread(descriptor_, operation.address, operation.length, offset);
        break;
      case Action::kWrite:
        result = ::pwrite(descriptor_, operation.address, operation.length, offset);
        break;
      case Action::kSync:
        result = ::fdatasync(descriptor_);
        break;
    }
    return result < 0 ? -errno : result;
  }

  int descriptor_;
  std::deque<Started> queue_;
  std::mutex lock_;
  std::condition_variable woken_;
  bool wake_ = false;
};

}  // namespace

std::unique_ptr<IoEngine> make_blocking_engine(int descriptor) {
  return std::make_unique<BlockingEngine>(descriptor);
}

}  // namespace catchment::optimizer
