// Waits for the end of the switch: a signal, or the end of the process that it serves.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "catchment/common/file_descriptor.hpp"

namespace catchment::server {

class Ending {
 public:
  // Takes SIGTERM and SIGINT from this thread on and all that it starts: make it before any other.
  Ending();

  // Also ends with this process, however that ends. Throws std::system_error if it cannot be
  // watched; one that has ended already is an end.
  void with_owner(int pid);

  // Returns when it is time to end, and why.
  std::string wait();

 private:
  FileDescriptor signals_;
  std::optional<FileDescriptor> owner_;  // invalid: it has ended
};

}  // namespace catchment::server
