#include "program_loader.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "catchment/common/seals.hpp"

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

Result<std::unique_ptr<LoadedProgram>> LoadedProgram::open_sealed(FileDescriptor object) {
  auto loaded = open("/proc/self/fd/" + std::to_string(object.get()));
  if (loaded.ok()) {
    loaded.value()->object_ = std::move(object);
  }
  return loaded;
}

Result<std::unique_ptr<LoadedProgram>> LoadedProgram::open_copy(const std::string& shared_object) {
  const auto failed = [&](const std::string& what) {
    return Status(StatusCode::invalid_argument, "cannot " + what + " the compiled program " +
                                                    shared_object + ": " + std::strerror(errno));
  };
  const FileDescriptor file(::open(shared_object.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found{};
  if (!file.valid() || fstat(file.get(), &found) != 0) {
    return failed("open");
  }
  FileDescriptor copy(memfd_create("catchment-program", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!copy.valid()) {
    return failed("make memory for");
  }
  for (auto left = found.st_size; left > 0;) {
    const ssize_t done = sendfile(copy.get(), file.get(), nullptr, static_cast<std::size_t>(left));
    if (done <= 0) {
      return failed("copy");
    }
    left -= done;
  }
  if (!seal(copy.get(), kWriteSeals)) {
    return failed("seal");
  }
  return open_sealed(std::move(copy));
}

}  // namespace catchment::softswitch
