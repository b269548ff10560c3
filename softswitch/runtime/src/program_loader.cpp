#include "program_loader.hpp"

#include <dlfcn.h>

namespace catchment::softswitch {

void LoadedProgram::CloseLibrary::operator()(void* handle) const { dlclose(handle); }

LoadedProgram::~LoadedProgram() = default;

Result<std::unique_ptr<LoadedProgram>> LoadedProgram::open(const std::string& shared_object) {
  // A name without a slash would be searched for in the library path.
  const std::string path =
      shared_object.find('/') == std::string::npos ? "./" + shared_object : shared_object;
  std::unique_ptr<LoadedProgram> loaded(new LoadedProgram);
  loaded->library_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (loaded->library_ == nullptr) {
    const char* why = dlerror();
    return Status(StatusCode::invalid_argument,
                  "cannot open the compiled program: " + std::string(why != nullptr ? why : path));
  }
  const auto abi = reinterpret_cast<CatchmentAbiFunction>(
      dlsym(loaded->library_.get(), "catchment_program_abi"));
  const auto make = reinterpret_cast<CatchmentProgramFunction>(
      dlsym(loaded->library_.get(), "catchment_program_create"));
  if (abi == nullptr || make == nullptr) {
    return Status(StatusCode::invalid_argument, shared_object + " is not a compiled P4 program");
  }
  if (abi() != rt::kProgramAbi) {
    return Status(StatusCode::invalid_argument,
                  shared_object + " was compiled for another version of the runtime (" +
                      std::to_string(abi()) + ", this is " + std::to_string(rt::kProgramAbi) +
                      "); rebuild the runtime (make native) and compile the program again");
  }
  loaded->program_.reset(make());
  return loaded;
}

}  // namespace catchment::softswitch
