#include "sleepers.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace catchment::host {

Sleepers::Sleeper::Sleeper(Sleepers& all, const std::atomic<bool>* done) : all_(all), done_(done) {
  const std::scoped_lock lock(all_.mutex_);
  if (all_.bells_.empty()) {
    bell_ = FileDescriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  } else {
    bell_ = std::move(all_.bells_.back());
    all_.bells_.pop_back();
  }
  all_.sleepers_.push_back(this);
  all_.bells_.reserve(all_.bells_.size() + all_.sleepers_.size());  // the destructor cannot fail
  all_.count_.store(all_.sleepers_.size());
}

Sleepers::Sleeper::~Sleeper() {
  const std::scoped_lock lock(all_.mutex_);
  std::erase(all_.sleepers_, this);
  all_.count_.store(all_.sleepers_.size());
  if (woken_) {
    std::uint64_t rung = 0;
    [[maybe_unused]] const ssize_t size = read(bell_.get(), &rung, sizeof rung);
  }
  if (bell_.valid()) all_.bells_.push_back(std::move(bell_));
}

void Sleepers::Sleeper::wake() {
  if (std::exchange(woken_, true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(bell_.get(), &one, sizeof one);
}

void Sleepers::wake_done() {
  if (count_.load() == 0) return;
  const std::scoped_lock lock(mutex_);
  for (Sleeper* const sleeper : sleepers_) {
    if (sleeper->done_ != nullptr && sleeper->done_->load()) sleeper->wake();
  }
}

void Sleepers::wake_one() {
  if (count_.load() == 0) return;
  const std::scoped_lock lock(mutex_);
  const auto waits = [](const Sleeper* sleeper) { return sleeper->done_ != nullptr; };
  const bool any_waits = std::ranges::any_of(sleepers_, waits);
  const auto fits = [&](const Sleeper* sleeper) { return waits(sleeper) == any_waits; };
  const auto awake = [&](const Sleeper* sleeper) { return fits(sleeper) && sleeper->woken_; };
  if (std::ranges::any_of(sleepers_, awake)) return;
  const auto found = std::ranges::find_if(sleepers_, fits);
  if (found != sleepers_.end()) (*found)->wake();
}

void Sleepers::wake_all() {
  if (count_.load() == 0) return;
  const std::scoped_lock lock(mutex_);
  for (Sleeper* const sleeper : sleepers_) sleeper->wake();
}

}  // namespace catchment::host
