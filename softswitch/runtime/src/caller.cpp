#include "caller.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "catchment/common/clock.hpp"
#include "catchment/common/seals.hpp"

namespace catchment::softswitch {

namespace {

constexpr Nanos kCallerPatience = 50 * kMillisecond;
constexpr std::size_t kBuffers = 1024;
constexpr int kTries = 3;  // to open a program before the next one is loaded

/// The end of a caller's patience, which begins when it first has to wait; `end`: 0 before.
Nanos patience_ends(Nanos& end) {
  end = end == 0 ? monotonic_now() + kCallerPatience : end;
  return end;
}

}  // namespace

Result<std::unique_ptr<Caller>> Caller::attach(FileDescriptor memory, pid_t owner) {
  auto mapped = StateMapping::open(std::move(memory));
  if (!mapped.ok()) {
    return mapped.status();
  }
  return std::unique_ptr<Caller>(new Caller(std::move(mapped.value()), owner));
}

Caller::Caller(std::shared_ptr<StateMapping> memory, pid_t owner)
    : memory_(std::move(memory)),
      owner_(owner),
      state_(memory_->state()),
      out_(kBuffers, state_.max_frame_bytes + kHeaderRoom) {
  engine_.out = &out_;
  engine_.hooks = this;
  engine_.groups = state_.groups;
  engine_.sessions = state_.sessions;
  engine_.ports = state_.ports;
  engine_.random = state_.random;
  engine_.drop_port = state_.drop_port;
  engine_.max_passes = state_.max_passes;
  engine_.max_frame_bytes = state_.max_frame_bytes;
  engine_.max_steps = state_.max_steps;
  engine_.shared = true;
}

Caller::~Caller() = default;

int Caller::look(pthread_mutex_t& mutex) {
  Patience& patience = exit_->shares_processor() ? sharing_ : alone_;
  const Nanos since = monotonic_now();
  int error = EBUSY;
  for (Nanos now = since; error == EBUSY; now = monotonic_now()) {
    const Waiting next = patience.next(since, now);
    if (next == Waiting::kSleep) {
      break;
    }
    patience.pass(next, now);
    if (state_.gate.occupied.load(std::memory_order_relaxed) == 0) {
      error = pthread_mutex_trylock(&mutex);
    }
  }
  return error;
}

Outcome Caller::lock_once(IfHeld held, Nanos& end) {
  GateState& gate = state_.gate;
  int error = pthread_mutex_trylock(&gate.mutex);
  if (error == EBUSY && held == IfHeld::give_up) {
    return Outcome::busy;
  }
  if (error == EBUSY) {
    error = look(gate.mutex);
  }
  if (error == EBUSY) {
    const Nanos at = patience_ends(end);
    const timespec until{.tv_sec = at / kSecond, .tv_nsec = at % kSecond};
    error = pthread_mutex_clocklock(&gate.mutex, CLOCK_MONOTONIC, &until);
  }
  if (error == EOWNERDEAD) {
    note_death(gate);
  } else if (error != 0) {
    return Outcome::busy;
  }
  gate.occupied.store(1, std::memory_order_relaxed);
  const Soundness soundness = gate.soundness.load(std::memory_order_relaxed);
  if (soundness == Soundness::sound) {
    return Outcome::ran;
  }
  unlock();
  return soundness == Soundness::torn ? Outcome::torn : Outcome::closed;
}

void Caller::unlock() const {
  pthread_mutex_unlock(&state_.gate.mutex);
  state_.gate.occupied.store(0, std::memory_order_relaxed);
}

Outcome Caller::lock(IfHeld held) {
  Nanos end = 0;
  const Outcome outcome = lock_once(held, end);
  if (outcome != Outcome::ran) {
    return outcome;
  }
  // Control calls that came while another batch held the lock go first, as in the switch.
  const std::uint32_t arrived = state_.gate.arrived.load();
  if (!missing(state_.gate, arrived)) {
    return outcome;
  }
  unlock();
  if (held == IfHeld::give_up || !let_in(state_.gate, arrived, patience_ends(end))) {
    return Outcome::busy;
  }
  return lock_once(held, end);
}

bool Caller::open(std::uint64_t epoch, const SharedProgram& program) {
  program_.reset();
  bound_ = false;
  opened_ = epoch;
  if (program.descriptor < 0) {
    return false;
  }
  const std::string path =
      "/proc/" + std::to_string(owner_) + "/fd/" + std::to_string(program.descriptor);
  FileDescriptor object(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found{};
  if (!object.valid() || fstat(object.get(), &found) != 0 || found.st_ino != program.inode ||
      !sealed(object.get(), kWriteSeals)) {
    opened_ = 0;  // perhaps the switch is just about to load another one
    return false;
  }
  auto loaded = LoadedProgram::open_sealed(std::move(object));
  if (loaded.ok()) {
    program_ = std::move(loaded.value());
  }
  return program_ != nullptr;
}

Outcome Caller::lock_program(IfHeld held) {
  for (int tries = 0; tries < kTries; ++tries) {
    if (const Outcome outcome = lock(held); outcome != Outcome::ran) {
      return outcome;
    }
    if (state_.epoch == opened_) {
      if (program_ != nullptr) {
        return Outcome::ran;
      }
      unlock();
      return Outcome::no_program;
    }
    const std::uint64_t epoch = state_.epoch;
    const SharedProgram program = state_.program;
    unlock();  // opening takes milliseconds
    if (!open(epoch, program)) {
      return Outcome::no_program;
    }
  }
  return Outcome::busy;
}

Outcome Caller::run(std::span<const rt::InputFrame> frames, Exit& exit, IfHeld held) {
  exit_ = &exit;
  if (const Outcome outcome = lock_program(held); outcome != Outcome::ran) {
    return outcome;
  }
  if (!exit.open()) {
    unlock();
    return Outcome::refused;
  }
  try {
    run_inside(frames, exit);
  } catch (...) {
    leave_torn(exit);
    throw;
  }
  unlock();
  return Outcome::ran;
}

void Caller::leave_torn(Exit& exit) {
  out_.use(nullptr);
  for (std::size_t i = 0; i < out_.size(); ++i) {
    out_.release(out_[i].data);
  }
  out_.truncate(0);
  program_.reset();  // it may be in the middle of a frame; the next one finds a new instance
  bound_ = false;
  opened_ = 0;
  exit.close();
  note_torn(state_.gate);
  unlock();
}

void Caller::run_inside(std::span<const rt::InputFrame> frames, Exit& exit) {
  if (!bound_) {
    (*program_)->bind(state_.program.bindings());
    bound_ = true;
  }
  engine_.now_us = static_cast<std::uint64_t>(monotonic_now() - state_.started_ns) / 1000;
  out_.use(&exit);
  (*program_)->process(frames, engine_);
  out_.use(nullptr);
  for (std::size_t i = 0; i < out_.size(); ++i) {
    const rt::OutFrame& frame = out_[i];
    rt::PortCounters& counters = state_.ports[frame.port % rt::kPorts];
    switch (exit.leave(frame)) {
      case Left::sent:
        counters.tx_packets += 1;
        counters.tx_bytes += frame.length;
        break;
      case Left::switchs:
        break;
      case Left::full:
        counters.drops[static_cast<std::size_t>(DropCause::tx_full)] += 1;
        break;
      case Left::too_long:
        counters.drops[static_cast<std::size_t>(DropCause::too_long)] += 1;
        break;
    }
    out_.release(frame.data);
  }
  out_.truncate(0);
  exit.close();
}

void Caller::digest(std::uint32_t digest_id, std::vector<std::string> members) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  exit_->digest({digest_id, std::move(members),
                 std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()});
}

void Caller::log(const std::string& message) { exit_->line(message); }

void Caller::step_limit(std::uint32_t port, const char* where) { exit_->step_limit(port, where); }

}  // namespace catchment::softswitch
