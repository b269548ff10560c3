// The accesses to a device's registers that wait, one under way at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace catchment::cosim {

class RegisterPort {
 public:
  struct Access {
    bool reads;
    std::uint32_t address;
    std::uint32_t value;
  };
  struct Answer {
    Access access;
    std::uint32_t response;
    std::uint32_t value;
  };
  // A device's, see rtl/harness/device.hpp.
  struct Functions {
    void (*begin_write)(void* device, std::uint32_t address, std::uint32_t value);
    void (*begin_read)(void* device, std::uint32_t address);
    std::uint32_t (*answer)(void* device, std::uint32_t* value);
    void (*give_up)(void* device);
  };

  RegisterPort(Functions functions, void* device) : functions_(functions), device_(device) {}

  void access(Access access) { accesses_.push_back(access); }
  // Reads and failed writes that have been answered since the last call.
  std::vector<Answer> answers() { return std::exchange(answers_, {}); }
  [[nodiscard]] bool accessing() const { return !accesses_.empty(); }

  // Before and after a clock of the device.
  void drive();
  void sample();

 private:
  static constexpr int kTimeout = 1000;  // clocks for an access

  Functions functions_;
  void* device_;
  std::deque<Access> accesses_;
  int clocks_left_ = 0;  // for the access under way, 0: none is
  std::vector<Answer> answers_;
};

}  // namespace catchment::cosim
