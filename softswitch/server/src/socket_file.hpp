// Unix sockets that a server listens on by a file.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace catchment::server {

// Returns what keeps a server from listening at `path`, or nothing; a socket that no process
// listens on any more is removed.
std::optional<std::string> make_room_for_socket(const std::string& path);

// Files that this process makes meanwhile are for its user alone.
class PrivateFiles {
 public:
  PrivateFiles() : before_(::umask(0177)) {}
  ~PrivateFiles() { ::umask(before_); }
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

 private:
  const mode_t before_;
};

}  // namespace catchment::server
