// What goes wrong inside the library; never crosses the C interface.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

#include "catchment_shm.h"

namespace catchment::shm {

class ShmError : public std::runtime_error {
 public:
  ShmError(catchment_shm_status status, const std::string& text)
      : std::runtime_error(text), status_(status) {}
  /// `what`: the operating system's reason for `error` is added.
  ShmError(const std::string& what, int error)
      : ShmError(CATCHMENT_SHM_SYSTEM, what + ": " + std::strerror(error)) {}
  [[nodiscard]] catchment_shm_status status() const { return status_; }

 private:
  catchment_shm_status status_;
};

}  // namespace catchment::shm
