// Which compiled programs this switch may run, found by the SHA-256 of their content.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace catchment::server {

// A copy of a program for the loader: private to this process, so that what was checked is what
// runs, whatever becomes of the original. The copy is removed with the object (a program that was
// loaded from it stays loaded).
class ProgramCopy {
 public:
  // Throws RpcError(INTERNAL) when the copy cannot be written.
  explicit ProgramCopy(std::string_view content);
  ~ProgramCopy();
  ProgramCopy(const ProgramCopy&) = delete;
  ProgramCopy& operator=(const ProgramCopy&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A shared object is machine code: to accept any that arrives over the network would hand the
// machine to every client that can connect. So a client only names a program, by its content, and
// the programs themselves are those the operator put on this machine.
class ProgramStore {
 public:
  // `directory` (may be empty: none) is searched for *.so at every request; `files` are allowed
  // too.
  ProgramStore(std::filesystem::path directory, std::vector<std::filesystem::path> files);

  // Returns the content of the program that a P4Runtime p4_device_config names: either the shared
  // object itself (its hash is looked up, its bytes are not used) or "sha256:" and 64 hex digits.
  // Throws RpcError(INVALID_ARGUMENT) when it names none, or none that is allowed.
  std::string find(std::string_view device_config);

 private:
  struct Seen {
    std::uintmax_t size;
    std::filesystem::file_time_type changed;
    std::string sha256;
  };

  std::optional<std::string> read_if(const std::filesystem::path& file, const std::string& sha256);

  std::filesystem::path directory_;
  std::vector<std::filesystem::path> files_;
  std::map<std::filesystem::path, Seen> seen_;
};

// Returns the SHA-256 of the content in lower-case hex.
std::string sha256_hex(std::string_view content);

// Returns a file's content; throws RpcError(NOT_FOUND) with the reason when it cannot be read.
std::string read_file(const std::filesystem::path& file);

}  // namespace catchment::server
