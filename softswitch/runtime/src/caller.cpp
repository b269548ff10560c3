#include "caller.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

namespace catchment::softswitch {

namespace {

constexpr std::int64_t kCallerPatienceNs = 50'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kBuffers = 1024;
constexpr std::size_t kHeaderRoom = 4096;  // that a program adds to the longest frame
constexpr int kTries = 3;                  // to open a program before the next one is loaded
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

bool sealed(int descriptor, int seals) {
  const int found = fcntl(descriptor, F_GET_SEALS);
  return found >= 0 && (found & seals) == seals;
}

Status refused(const std::string& why) {
  return {StatusCode::failed_precondition, "cannot run the switch's program here: " + why};
}

}  // namespace

Result<std::unique_ptr<Caller>> Caller::attach(FileDescriptor memory, pid_t owner) {
  struct stat found{};
  if (fstat(memory.get(), &found) != 0) {
    return refused(std::string("its memory cannot be looked at: ") + std::strerror(errno));
  }
  if (!sealed(memory.get(), kSizeSeals)) {
    return refused("the size of its memory is not sealed");
  }
  // Only what never changes is read before the memory is mapped.
  alignas(SharedState) std::array<std::byte, sizeof(SharedState)> head{};
  const auto* const state = reinterpret_cast<const SharedState*>(head.data());
  if (pread(memory.get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()) ||
      state->magic != kStateMagic) {
    return refused("its memory does not begin with TCHSTATE");
  }
  if (state->version != kStateVersion || state->program_abi != rt::kProgramAbi) {
    return refused("it is of another version than this library");
  }
  if (state->capacity != static_cast<std::uint64_t>(found.st_size)) {
    return refused("its memory has " + std::to_string(found.st_size) + " bytes, not " +
                   std::to_string(state->capacity));
  }
  void* const base = mmap(state->base, state->capacity, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, memory.get(), 0);
  if (base != state->base) {
    const std::string why = base == MAP_FAILED ? std::strerror(errno) : "another place was given";
    if (base != MAP_FAILED) {
      munmap(base, state->capacity);
    }
    return refused("its memory cannot be mapped where it must lie: " + why);
  }
  return std::unique_ptr<Caller>(
      new Caller(std::move(memory), owner, *static_cast<SharedState*>(base)));
}

Caller::Caller(FileDescriptor memory, pid_t owner, SharedState& state)
    : memory_(std::move(memory)),
      owner_(owner),
      state_(state),
      out_(kBuffers, state.max_frame_bytes + kHeaderRoom) {
  engine_.out = &out_;
  engine_.hooks = this;
  engine_.groups = state.groups;
  engine_.sessions = state.sessions;
  engine_.ports = state.ports;
  engine_.random = state.random;
  engine_.drop_port = state.drop_port;
  engine_.max_passes = state.max_passes;
  engine_.max_frame_bytes = state.max_frame_bytes;
  engine_.max_steps = state.max_steps;
}

Caller::~Caller() {
  program_.reset();
  munmap(&state_, state_.capacity);
}

Outcome Caller::lock_once(const timespec& until) const {
  GateState& gate = state_.gate;
  const int error = pthread_mutex_clocklock(&gate.mutex, CLOCK_MONOTONIC, &until);
  if (error == EOWNERDEAD) {
    note_death(gate);
  } else if (error != 0) {
    return Outcome::busy;
  }
  const Soundness soundness = gate.soundness.load(std::memory_order_relaxed);
  if (soundness == Soundness::sound) {
    return Outcome::ran;
  }
  unlock();
  return soundness == Soundness::torn ? Outcome::torn : Outcome::closed;
}

void Caller::unlock() const { pthread_mutex_unlock(&state_.gate.mutex); }

Outcome Caller::lock() {
  const std::int64_t end = monotonic_ns() + kCallerPatienceNs;
  const timespec until{.tv_sec = end / kSecond, .tv_nsec = end % kSecond};
  Outcome outcome = lock_once(until);
  if (outcome != Outcome::ran) {
    return outcome;
  }
  // Control calls that came while another batch held the lock go first, as in the switch.
  const std::uint32_t arrived = state_.gate.arrived.load();
  if (!missing(state_.gate, arrived)) {
    return outcome;
  }
  unlock();
  if (!let_in(state_.gate, arrived, end)) {
    return Outcome::busy;
  }
  return lock_once(until);
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
      !sealed(object.get(), kSizeSeals | F_SEAL_WRITE)) {
    opened_ = 0;  // perhaps the switch is just about to load another one
    return false;
  }
  auto loaded = LoadedProgram::open_sealed(std::move(object));
  if (loaded.ok()) {
    program_ = std::move(loaded.value());
  }
  return program_ != nullptr;
}

Outcome Caller::lock_program() {
  for (int tries = 0; tries < kTries; ++tries) {
    if (const Outcome outcome = lock(); outcome != Outcome::ran) {
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

Outcome Caller::run(std::span<const rt::InputFrame> frames, const Sink& leave) {
  digests_.clear();
  lines_.clear();
  if (const Outcome outcome = lock_program(); outcome != Outcome::ran) {
    return outcome;
  }
  if (!bound_) {
    (*program_)->bind(state_.program.bindings());
    bound_ = true;
  }
  engine_.now_us = static_cast<std::uint64_t>(monotonic_ns() - state_.started_ns) / 1000;
  (*program_)->process(frames, engine_);
  for (std::size_t i = 0; i < out_.size(); ++i) {
    const rt::OutFrame& frame = out_[i];
    rt::PortCounters& counters = state_.ports[frame.port % rt::kPorts];
    if (leave(frame)) {
      counters.tx_packets += 1;
      counters.tx_bytes += frame.length;
    } else {
      counters.drops[static_cast<std::size_t>(DropCause::tx_full)] += 1;
    }
    out_.release(frame.data);
  }
  out_.truncate(0);
  unlock();
  return Outcome::ran;
}

void Caller::digest(std::uint32_t digest_id, std::vector<std::string> members) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  digests_.push_back({digest_id, std::move(members),
                      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()});
}

void Caller::log(const std::string& message) { lines_.push_back(message); }

void Caller::step_limit(std::uint32_t port, const char* where) {
  lines_.push_back(std::string(where) + ": a frame from port " + std::to_string(port) +
                   " was dropped: its loops took more than " + std::to_string(state_.max_steps) +
                   " steps");
}

}  // namespace catchment::softswitch
