// Tells when network interfaces appear, vanish, go up or down.
#pragma once

#include <functional>
#include <string>

#include "packet_socket.hpp"

namespace catchment::softswitch {

struct LinkChange {
  std::string interface;
  int index = 0;
  bool present = false;
  bool up = false;
};

class LinkWatch {
 public:
  LinkWatch();
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Reads what has come; never blocks.
  void read(const std::function<void(const LinkChange&)>& report);

 private:
  Descriptor socket_;
};

}  // namespace catchment::softswitch
