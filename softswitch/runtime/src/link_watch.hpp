// Tells when network interfaces appear, vanish, go up or down.
#pragma once

#include "catchment/common/file_descriptor.hpp"

namespace catchment::softswitch {

class LinkWatch {
 public:
  LinkWatch();
  /// Readable after a change; -1 if the system does not tell.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Discards the kernel's notices; never blocks.
  void drain();

 private:
  FileDescriptor socket_;
};

}  // namespace catchment::softswitch
