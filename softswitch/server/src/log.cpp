#include "log.hpp"

#include <unistd.h>

#include <string_view>

namespace catchment::server {

void Log::write(LogLevel level, const std::string& text) const {
  if (level > level_) {
    return;
  }
  // One write call, so that lines of several threads do not mix.
  const std::string line = "catchment-switch: " + text + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written <= 0) {
      return;  // stderr cannot be written to
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace catchment::server
