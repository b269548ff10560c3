// A process that runs the switch's program itself, on the state that the switch made
// (docs/explanation/switch-in-callers.md).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "program_loader.hpp"
#include "shared_state.hpp"

namespace catchment::softswitch {

/// What became of a batch of frames.
enum class Outcome : std::uint8_t {
  ran,
  torn,        // somebody died in the middle of a frame: the switch has to repair the state first
  busy,        // somebody has had the lock for 50 ms
  no_program,  // none is loaded, or one that only the switch can run
  closed,      // the switch has ended
};

class Caller final : private rt::Hooks {
 public:
  /// Takes a frame that leaves, under the lock; false: there is no room for it.
  using Sink = std::function<bool(const rt::OutFrame&)>;

  /// Maps the memory behind `memory`, which the process `owner` made, where that one has it.
  static Result<std::unique_ptr<Caller>> attach(FileDescriptor memory, pid_t owner);
  ~Caller() override;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// Runs frames as the switch would; unless they ran, nothing has happened to them.
  Outcome run(std::span<const rt::InputFrame> frames, const Sink& leave);

  /// Digests and lines of the log that the frames of the last run made: the switch's to tell.
  [[nodiscard]] const std::vector<DigestMessage>& digests() const { return digests_; }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  Caller(FileDescriptor memory, pid_t owner, SharedState& state);

  /// Takes the lock for a frame; unless the outcome is `ran`, it is not taken.
  Outcome lock();
  /// The same, with the program that is running open here.
  Outcome lock_program();
  [[nodiscard]] Outcome lock_once(const timespec& until) const;
  void unlock() const;
  /// Opens the program that the state is of, without the lock. Whether it can be run here.
  bool open(std::uint64_t epoch, const SharedProgram& program);

  void digest(std::uint32_t digest_id, std::vector<std::string> members) override;
  void log(const std::string& message) override;
  void step_limit(std::uint32_t port, const char* where) override;

  FileDescriptor memory_;
  pid_t owner_;
  SharedState& state_;
  rt::Engine engine_;
  rt::Output out_;
  std::unique_ptr<LoadedProgram> program_;
  std::uint64_t opened_ = 0;  // the epoch of program_
  bool bound_ = false;
  std::vector<DigestMessage> digests_;
  std::vector<std::string> lines_;
};

}  // namespace catchment::softswitch
