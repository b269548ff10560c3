#include "program_store.hpp"

#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "rpc_error.hpp"

namespace catchment::server {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHashPrefix = "sha256:";
constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";

// Returns the hash that a device config asks for.
std::string wanted_hash(std::string_view device_config) {
  if (device_config.starts_with(kElfMagic)) {
    return sha256_hex(device_config);
  }
  if (device_config.starts_with(kHashPrefix)) {
    std::string_view digits = device_config.substr(kHashPrefix.size());
    const auto end = digits.find_last_not_of(" \r\n\t");
    digits = digits.substr(0, end == std::string_view::npos ? 0 : end + 1);
    if (digits.size() == 64 &&
        digits.find_first_not_of("0123456789abcdef") == std::string_view::npos) {
      return std::string(digits);
    }
  }
  throw invalid_argument(
      "p4_device_config names no program: it must be the shared object that the compiler made, or "
      "'sha256:' and the 64 lower-case hex digits of its hash");
}

}  // namespace

ProgramCopy::ProgramCopy(std::string_view content) {
  // The loader takes two files of the same name for the same program, so every copy has its own.
  static std::atomic<unsigned> number = 0;
  path_ = fs::temp_directory_path() / ("catchment-program-" + std::to_string(::getpid()) + "-" +
                                       std::to_string(number++) + "-XXXXXX");
  std::string name = path_.string();
  const int file = ::mkstemp(name.data());
  path_ = name;
  if (file < 0) {
    throw RpcError(grpc::StatusCode::INTERNAL,
                   "cannot create " + name + ": " + std::strerror(errno));
  }
  ::close(file);
  std::ofstream out(path_, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) {
    std::error_code ignored;
    fs::remove(path_, ignored);
    throw RpcError(grpc::StatusCode::INTERNAL, "cannot write " + name);
  }
}

ProgramCopy::~ProgramCopy() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

ProgramStore::ProgramStore(fs::path directory, std::vector<fs::path> files)
    : directory_(std::move(directory)), files_(std::move(files)) {}

std::string ProgramStore::find(std::string_view device_config) {
  const std::string sha256 = wanted_hash(device_config);
  std::vector<fs::path> candidates = files_;
  if (!directory_.empty()) {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(directory_, error)) {
      if (entry.path().extension() == ".so" && entry.is_regular_file(error)) {
        candidates.push_back(entry.path());
      }
    }
    std::sort(candidates.begin(), candidates.end());
  }
  for (const auto& file : candidates) {
    if (auto content = read_if(file, sha256)) {
      return std::move(*content);
    }
  }
  throw invalid_argument(
      "the program with sha256 " + sha256 + " is not one this switch may run: " +
      (directory_.empty() ? "it was started without --program-dir, start it with a directory that "
                            "holds the compiled program"
                          : "copy the compiled program (*.so) into " + directory_.string()));
}

std::optional<std::string> ProgramStore::read_if(const fs::path& file, const std::string& sha256) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  const auto changed = fs::last_write_time(file, error);
  if (error) {
    return std::nullopt;
  }
  const auto known = seen_.find(file);
  if (known != seen_.end() && known->second.size == size && known->second.changed == changed &&
      known->second.sha256 != sha256) {
    return std::nullopt;
  }
  std::string content;
  try {
    content = read_file(file);
  } catch (const RpcError&) {
    return std::nullopt;  // unreadable: not a candidate
  }
  const std::string actual = sha256_hex(content);
  seen_[file] = {size, changed, actual};
  return actual == sha256 ? std::optional(std::move(content)) : std::nullopt;
}

std::string sha256_hex(std::string_view content) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(content.data(), content.size(), digest, &length, EVP_sha256(), nullptr) != 1) {
    throw RpcError(grpc::StatusCode::INTERNAL, "SHA-256 is not available");
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += digits[digest[i] >> 4];
    text += digits[digest[i] & 15];
  }
  return text;
}

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) {
    throw not_found("cannot read " + file.string() + ": " + std::strerror(errno));
  }
  return content;
}

}  // namespace catchment::server
