#include "register_port.hpp"

#include "rtl/harness/device.hpp"

namespace catchment::cosim {

void RegisterPort::drive() {
  if (clocks_left_ != 0 || accesses_.empty()) return;
  const Access& next = accesses_.front();
  if (next.reads) {
    functions_.begin_read(device_, next.address);
  } else {
    functions_.begin_write(device_, next.address, next.value);
  }
  clocks_left_ = kTimeout;
}

void RegisterPort::sample() {
  if (clocks_left_ == 0) return;
  std::uint32_t value = 0;
  const std::uint32_t response = functions_.answer(device_, &value);
  if (response == rtl::Device::kNoAnswer && --clocks_left_ != 0) return;
  if (response == rtl::Device::kNoAnswer) functions_.give_up(device_);
  clocks_left_ = 0;
  const Access& done = accesses_.front();
  if (done.reads || response != 0) answers_.push_back({done, response, value});
  accesses_.pop_front();
}

}  // namespace catchment::cosim
