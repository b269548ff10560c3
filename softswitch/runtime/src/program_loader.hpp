// Opens a compiled program and keeps its shared object in memory for as long as the program lives.
#pragma once

#include <memory>
#include <string>

#include "catchment/softswitch/rt/program.hpp"
#include "catchment/softswitch/status.hpp"

namespace catchment::softswitch {

class LoadedProgram {
 public:
  static Result<std::unique_ptr<LoadedProgram>> open(const std::string& shared_object);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  rt::Program& operator*() { return *program_; }
  rt::Program* operator->() { return program_.get(); }

 private:
  LoadedProgram() = default;

  struct CloseLibrary {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, CloseLibrary> library_;  // closed after the program is gone
  std::unique_ptr<rt::Program> program_;
};

}  // namespace catchment::softswitch
