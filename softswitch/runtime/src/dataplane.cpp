#include "catchment/softswitch/dataplane.hpp"

#include <algorithm>
#include <random>

#include "dataplane_impl.hpp"
#include "passed_on.hpp"

namespace catchment::softswitch {

const char* drop_cause_name(DropCause cause) {
  switch (cause) {
    case DropCause::parser:
      return "parser error";
    case DropCause::program:
      return "dropped by the program";
    case DropCause::no_such_port:
      return "no such port";
    case DropCause::tx_full:
      return "transmit queue full";
    case DropCause::too_long:
      return "frame too long";
    case DropCause::no_program:
      return "no program loaded";
    case DropCause::loop_limit:
      return "resubmitted or recirculated too often";
    case DropCause::no_group:
      return "empty multicast group";
    case DropCause::step_limit:
      return "too many loop steps";
  }
  return "unknown";
}

namespace {

constexpr std::size_t kBuffers = 4096;
constexpr std::uint64_t kStepLimitLogUs = 1'000'000;
constexpr std::size_t kInjectBuffers = 1024;

}  // namespace

Dataplane::Impl::Impl(DataplaneOptions given)
    : options(given),
      memory(given.in_callers ? StateMemory::Reach::shared : StateMemory::Reach::process),
      shared(make_in<SharedState>(memory)),
      gate(shared->gate, [this] { repair(); }),
      door{memory, *shared, gate},
      random(make_in<rt::Random>(
          memory, given.random_seed != 0 ? given.random_seed : std::random_device{}())),
      groups(memory, rt::kGroups),
      sessions(memory, rt::kSessions),
      ports(memory, rt::kPorts),
      rings(memory, rt::kPorts),
      replication(engine, memory),
      packet_output(kBuffers, given.max_frame_bytes + kHeaderRoom),
      inject_output(kInjectBuffers, given.max_frame_bytes + kHeaderRoom),
      started(std::chrono::steady_clock::now()) {
  engine.groups = groups.data();
  engine.sessions = sessions.data();
  engine.ports = ports.data();
  engine.random = random.get();
  engine.drop_port = given.drop_port;
  engine.max_passes = given.max_passes;
  engine.max_frame_bytes = given.max_frame_bytes;
  engine.max_steps = given.max_steps;
  engine.hooks = this;
  shared->base = memory.base();
  shared->capacity = memory.capacity();
  shared->started_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(started.time_since_epoch()).count();
  shared->drop_port = given.drop_port;
  shared->max_passes = given.max_passes;
  shared->max_frame_bytes = given.max_frame_bytes;
  shared->max_steps = given.max_steps;
  shared->groups = groups.data();
  shared->sessions = sessions.data();
  shared->ports = ports.data();
  shared->random = random.get();
  shared->rings = rings.data();
}

Dataplane::Impl::~Impl() { gate.close(); }

void Dataplane::Impl::repair() {
  if (program != nullptr) {
    program->renew_registers();
  }
}

std::uint64_t Dataplane::Impl::now_us() const {
  const auto since = std::chrono::steady_clock::now() - started;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

Status Dataplane::Impl::not_loaded() {
  return {StatusCode::failed_precondition, "no program is loaded; set a forwarding pipeline first"};
}

void Dataplane::Impl::digest(std::uint32_t digest_id, std::vector<std::string> members) {
  if (digest_hook) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    digest_hook({digest_id, std::move(members),
                 std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()});
  }
}

void Dataplane::Impl::log(const std::string& message) {
  if (log_hook) {
    log_hook(message);
  }
}

/// The hook hears of a second's first dropped frame at once, of the others with the next report.
void Dataplane::Impl::step_limit(std::uint32_t port, const char* where) {
  step_limit_untold += 1;
  const bool reported_lately =
      step_limit_told_us != 0 && engine.now_us - step_limit_told_us < kStepLimitLogUs;
  if (!step_limit_hook || reported_lately) {
    return;
  }
  std::string text = std::string(where) + ": a frame from port " + std::to_string(port) +
                     " was dropped: its loops took more than " + std::to_string(options.max_steps) +
                     " steps";
  if (step_limit_untold > 1) {
    text += " (so were " + std::to_string(step_limit_untold - 1) + " more since the last line)";
  }
  step_limit_told_us = std::max<std::uint64_t>(engine.now_us, 1);
  step_limit_untold = 0;
  step_limit_hook(text);
}

void Dataplane::Impl::hand_to_cpu(const rt::OutFrame& frame, rt::Output& out) {
  packet_in_hook({std::string(reinterpret_cast<const char*>(frame.data), frame.length)});
  engine.ports[frame.port].tx_packets += 1;
  engine.ports[frame.port].tx_bytes += frame.length;
  out.release(frame.data);
}

/// The caller holds the lock. Frames to the CPU port leave the list here.
void Dataplane::Impl::run_batch(std::span<const rt::InputFrame> frames, rt::Output& out) {
  if (program == nullptr) {
    for (const rt::InputFrame& frame : frames) {
      rt::PortCounters& counters = engine.ports[frame.port % rt::kPorts];
      counters.rx_packets += 1;
      counters.rx_bytes += frame.length;
      counters.drops[static_cast<std::size_t>(DropCause::no_program)] += 1;
    }
    return;
  }
  engine.now_us = now_us();
  engine.out = &out;
  program->process(frames, engine);
  if (!packet_in_hook) {
    return;
  }
  std::size_t kept = 0;
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) {
    const rt::OutFrame frame = out[i];
    if (frame.port != options.cpu_port) {
      out.move(i, kept++);
      continue;
    }
    hand_to_cpu(frame, out);
  }
  out.truncate(kept);
}

void Dataplane::Impl::process(std::span<const rt::InputFrame> frames,
                              std::vector<rt::OutFrame>& out) {
  const Gate::Batch batch(gate);
  run_batch(frames, packet_output);
  for (std::size_t i = 0; i < packet_output.size(); ++i) {
    out.push_back(packet_output[i]);
  }
  packet_output.truncate(0);
}

void Dataplane::Impl::take_over(std::span<const PassedOn> passed, std::vector<rt::OutFrame>& out) {
  const Gate::Batch lock(gate);
  for (const PassedOn& what : passed) {
    const auto* const text = reinterpret_cast<const char*>(what.bytes.data());
    switch (what.what) {
      case PassedOn::What::frame: {
        const bool fits = what.bytes.size() <= packet_output.capacity();
        std::uint8_t* const room = fits ? packet_output.reserve() : nullptr;
        if (room == nullptr) {
          engine.ports[what.port % rt::kPorts]
              .drops[static_cast<std::size_t>(DropCause::tx_full)] += 1;
          break;
        }
        std::ranges::copy(what.bytes, room);
        const rt::OutFrame frame{room, static_cast<std::uint32_t>(what.bytes.size()), what.port};
        if (packet_in_hook && what.port == options.cpu_port) {
          hand_to_cpu(frame, packet_output);
        } else {
          out.push_back(frame);
        }
        break;
      }
      case PassedOn::What::digest:
        if (auto message = digest_in(what.bytes); message && digest_hook) {
          digest_hook(std::move(*message));
        }
        break;
      case PassedOn::What::line:
        log(std::string(text, what.bytes.size()));
        break;
      case PassedOn::What::step_limit:
        engine.now_us = now_us();
        step_limit(what.port, std::string(text, what.bytes.size()).c_str());
        break;
    }
  }
}

void Dataplane::Impl::sent(std::uint32_t port, std::uint64_t packets, std::uint64_t bytes,
                           std::span<const rt::OutFrame> frames) {
  const Gate::Batch lock(gate);
  engine.ports[port % rt::kPorts].tx_packets += packets;
  engine.ports[port % rt::kPorts].tx_bytes += bytes;
  for (const rt::OutFrame& frame : frames) {
    packet_output.release(frame.data);
  }
}

void Dataplane::Impl::dropped(std::uint32_t port, DropCause cause,
                              std::span<const rt::OutFrame> frames) {
  const Gate::Batch lock(gate);
  engine.ports[port % rt::kPorts].drops[static_cast<std::size_t>(cause)] += frames.size();
  for (const rt::OutFrame& frame : frames) {
    packet_output.release(frame.data);
  }
}

void Dataplane::Impl::count_drops(std::uint32_t port, DropCause cause, std::uint64_t packets) {
  const Gate::Batch lock(gate);
  engine.ports[port % rt::kPorts].drops[static_cast<std::size_t>(cause)] += packets;
}

class Dataplane::Pause::Held {
 public:
  explicit Held(Gate& gate) : hold_(gate) {}

 private:
  Gate::Hold hold_;
};

Dataplane::Pause::Pause(Dataplane& dataplane)
    : held_(std::make_unique<Held>(dataplane.impl_->gate)) {}
Dataplane::Pause::~Pause() = default;

Dataplane::Dataplane(DataplaneOptions options) : impl_(std::make_unique<Impl>(options)) {}
Dataplane::~Dataplane() = default;

Status Dataplane::load(const std::string& shared_object) {
  auto loaded = impl_->options.in_callers ? LoadedProgram::open_copy(shared_object)
                                          : LoadedProgram::open(shared_object);
  if (!loaded.ok()) {
    return loaded.status();
  }
  auto running = RunningProgram::start(std::move(loaded.value()), impl_->memory);
  if (!running.ok()) {
    return running.status();
  }
  std::unique_ptr<RunningProgram> old;  // ends after the lock is given back
  const Gate::Control lock(impl_->gate);
  running.value()->set_down_ports(impl_->down_ports);
  old = std::move(impl_->program);
  impl_->program = std::move(running.value());
  impl_->shared->program = impl_->program->share();
  impl_->shared->epoch += 1;
  impl_->replication.clear();
  return {};
}

Status Dataplane::verify(const std::string& shared_object) {
  auto loaded = LoadedProgram::open(shared_object);
  if (!loaded.ok()) {
    return loaded.status();
  }
  StateMemory memory;
  return RunningProgram::start(std::move(loaded.value()), memory).status();
}

bool Dataplane::loaded() const {
  const Gate::Control lock(impl_->gate);
  return impl_->program != nullptr;
}

std::shared_ptr<const ProgramInfo> Dataplane::info() const {
  const Gate::Control lock(impl_->gate);
  return impl_->program == nullptr ? nullptr : impl_->program->shared_info();
}

const DataplaneOptions& Dataplane::options() const { return impl_->options; }

void Dataplane::on_packet_in(std::function<void(PacketIn&&)> hook) {
  const Gate::Control lock(impl_->gate);
  impl_->packet_in_hook = std::move(hook);
}

void Dataplane::on_digest(std::function<void(DigestMessage&&)> hook) {
  const Gate::Control lock(impl_->gate);
  impl_->digest_hook = std::move(hook);
}

void Dataplane::on_idle_timeout(std::function<void(IdleNotification&&)> hook) {
  const Gate::Control lock(impl_->gate);
  impl_->idle_hook = std::move(hook);
}

void Dataplane::on_log(std::function<void(const std::string&)> hook) {
  const Gate::Control lock(impl_->gate);
  impl_->log_hook = std::move(hook);
}

void Dataplane::on_step_limit(std::function<void(const std::string&)> hook) {
  const Gate::Control lock(impl_->gate);
  impl_->step_limit_hook = std::move(hook);
}

void Dataplane::expire_idle(std::int64_t now_ns) {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr || !impl_->idle_hook) {
    return;
  }
  for (const auto& table : impl_->program->tables()) {
    table->expire(impl_->now_us(),
                  [&](const TableEntry& entry) { impl_->idle_hook({entry, now_ns}); });
  }
}

Result<std::vector<OutputFrame>> Dataplane::inject(std::uint32_t port, std::string_view frame) {
  if (port >= rt::kPorts) {
    return Status(StatusCode::invalid_argument,
                  "port " + std::to_string(port) + " is not below " + std::to_string(rt::kPorts));
  }
  if (frame.size() > impl_->options.max_frame_bytes) {
    return Status(StatusCode::invalid_argument, "a frame of " + std::to_string(frame.size()) +
                                                    " bytes is longer than " +
                                                    std::to_string(impl_->options.max_frame_bytes));
  }
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  const rt::InputFrame input{reinterpret_cast<const std::uint8_t*>(frame.data()),
                             static_cast<std::uint32_t>(frame.size()), port};
  rt::Output& out = impl_->inject_output;
  impl_->run_batch({&input, 1}, out);
  std::vector<OutputFrame> result;
  for (std::size_t i = 0; i < out.size(); ++i) {
    result.push_back(
        {out[i].port, std::string(reinterpret_cast<const char*>(out[i].data), out[i].length)});
    impl_->engine.ports[out[i].port % rt::kPorts].tx_packets += 1;
    impl_->engine.ports[out[i].port % rt::kPorts].tx_bytes += out[i].length;
    out.release(out[i].data);
  }
  out.truncate(0);
  return result;
}

std::vector<std::string> Dataplane::strays() const {
  const Gate::Control lock(impl_->gate);
  StrayFinder finder(impl_->memory);
  finder.look_at(impl_->engine);
  if (impl_->program != nullptr) {
    impl_->program->find_strays(finder);
  }
  return finder.strays();
}

int Dataplane::state_descriptor() const { return impl_->memory.descriptor(); }

std::size_t Dataplane::state_bytes() const { return impl_->memory.in_use(); }

PortStatistics Dataplane::statistics(std::uint32_t port) const {
  const Gate::Control lock(impl_->gate);
  PortStatistics out;
  if (port < rt::kPorts) {
    const rt::PortCounters& counters = impl_->engine.ports[port];
    out.rx_packets = counters.rx_packets;
    out.rx_bytes = counters.rx_bytes;
    out.tx_packets = counters.tx_packets;
    out.tx_bytes = counters.tx_bytes;
    std::copy(std::begin(counters.drops), std::end(counters.drops), std::begin(out.drops));
  }
  return out;
}

CallersDoor* Dataplane::callers_door() {
  return impl_->options.in_callers ? &impl_->door : nullptr;
}

Packets& Dataplane::packets() { return *impl_; }

}  // namespace catchment::softswitch
