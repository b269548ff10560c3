// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace catchment {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes what a system call returned; -1 makes it invalid.
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  /// Takes what the system call `what` returned; throws std::system_error for -1.
  FileDescriptor(int descriptor, const char* what) : descriptor_(descriptor) {
    if (descriptor < 0) {
      throw std::system_error(errno, std::generic_category(), what);
    }
  }
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }

  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool valid() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace catchment
