// A process that runs the switch's program itself, on the state that the switch made
// (docs/explanation/switch-in-callers.md).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/common/patience.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "program_loader.hpp"
#include "shared_state.hpp"
#include "state_mapping.hpp"

namespace catchment::softswitch {

/// What became of a batch of frames.
enum class Outcome : std::uint8_t {
  ran,
  torn,        // somebody died in the middle of a frame: the switch has to repair the state first
  busy,        // somebody has the lock, and had it for 50 ms if the caller waits
  no_program,  // none is loaded, or one that only the switch can run
  closed,      // the switch has ended
  refused,     // the exit did not open
};

/// What a caller does while another has the lock.
enum class IfHeld : std::uint8_t { wait, give_up };

/// What became of a frame that left the program.
enum class Left : std::uint8_t {
  sent,
  switchs,   // the switch sends it, and counts it
  full,      // there was no room for it
  too_long,  // for that port
};

/// The way by which frames leave, with what the program said of them. All of it but
/// shares_processor() is called under the lock.
class Exit : public rt::Rooms {
 public:
  /// Whether somebody whom frames go to may need the processor that this thread waits on.
  virtual bool shares_processor() { return false; }
  /// Whether frames may be run now.
  virtual bool open() { return true; }
  /// Frames without a room leave when the batch has been run.
  rt::Room room(std::uint32_t) override { return {}; }
  void filled(std::uint32_t, std::uint32_t) override {}
  virtual Left leave(const rt::OutFrame& frame) = 0;
  virtual void digest(const DigestMessage& message) = 0;
  virtual void line(const std::string& text) = 0;
  virtual void step_limit(std::uint32_t port, const char* where) = 0;
  /// Ends a batch, after its last frame.
  virtual void close() {}
};

class Caller final : private rt::Hooks {
 public:
  /// Maps the memory behind `memory`, which the process `owner` made, where that one has it.
  static Result<std::unique_ptr<Caller>> attach(FileDescriptor memory, pid_t owner);
  ~Caller() override;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// Runs frames as the switch would; unless they ran, nothing has happened to them. What is thrown
  /// on the way, as when memory ends, leaves a state behind that is torn.
  Outcome run(std::span<const rt::InputFrame> frames, Exit& exit, IfHeld held = IfHeld::wait);

  [[nodiscard]] const std::shared_ptr<StateMapping>& memory() const { return memory_; }

 private:
  Caller(std::shared_ptr<StateMapping> memory, pid_t owner);

  /// Takes the lock for a frame; unless the outcome is `ran`, it is not taken.
  Outcome lock(IfHeld held);
  /// The same, with the program that is running open here.
  Outcome lock_program(IfHeld held);
  [[nodiscard]] Outcome lock_once(IfHeld held, std::int64_t& end);
  /// Looks again at a lock that another one has, for as long as that costs less than to sleep and
  /// to be woken. What the last look said.
  int look(pthread_mutex_t& mutex);
  void unlock() const;
  /// The part of run() under the lock.
  void run_inside(std::span<const rt::InputFrame> frames, Exit& exit);
  /// Gives the lock back in the middle of a batch.
  void leave_torn(Exit& exit);
  /// Opens the program that the state is of, without the lock. Whether it can be run here.
  bool open(std::uint64_t epoch, const SharedProgram& program);

  void digest(std::uint32_t digest_id, std::vector<std::string> members) override;
  void log(const std::string& message) override;
  void step_limit(std::uint32_t port, const char* where) override;

  std::shared_ptr<StateMapping> memory_;
  pid_t owner_;
  SharedState& state_;
  rt::Engine engine_;
  rt::Output out_;
  std::unique_ptr<LoadedProgram> program_;
  std::uint64_t opened_ = 0;  // the epoch of program_
  bool bound_ = false;
  Exit* exit_ = nullptr;  // of the batch that is being run
  Patience alone_{lock_patience(true)};
  Patience sharing_{lock_patience(false)};
};

}  // namespace catchment::softswitch
