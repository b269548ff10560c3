// Opens a compiled program and keeps its shared object in memory for as long as the program lives.
#pragma once

#include <memory>
#include <string>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/softswitch/rt/program.hpp"
#include "catchment/softswitch/status.hpp"

namespace catchment::softswitch {

class LoadedProgram {
 public:
  static Result<std::unique_ptr<LoadedProgram>> open(const std::string& shared_object);
  /// Copies it to memory first, which nobody can change any more and descriptor() leads to.
  static Result<std::unique_ptr<LoadedProgram>> open_copy(const std::string& shared_object);
  /// Opens what such a descriptor leads to.
  static Result<std::unique_ptr<LoadedProgram>> open_sealed(FileDescriptor object);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  /// -1 unless it was opened through one.
  [[nodiscard]] int descriptor() const { return object_.get(); }

  rt::Program& operator*() { return *program_; }
  rt::Program* operator->() { return program_.get(); }

 private:
  LoadedProgram() = default;

  struct CloseLibrary {
    void operator()(void* handle) const;
  };
  FileDescriptor object_;  // its number names the library, so no other may get it meanwhile
  std::unique_ptr<void, CloseLibrary> library_;  // closed after the program is gone
  std::unique_ptr<rt::Program> program_;
};

}  // namespace catchment::softswitch
