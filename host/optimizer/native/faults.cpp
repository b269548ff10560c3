#include "faults.hpp"

#include <unistd.h>

#include <csignal>
#include <system_error>

namespace catchment::optimizer {
namespace {

constexpr std::size_t kSector = 512;

struct LogRecord {
  std::uint32_t device;
  std::uint32_t kind;  // Action of an operation started, kDone otherwise
  std::uint64_t id;
  std::uint64_t offset;
  std::uint64_t length;  // a write's bytes follow the record
};
constexpr std::uint32_t kDone = 3;

}  // namespace

Faults::Faults(FaultPlan plan, const std::string& log) : plan_(plan) {
  if (log.empty()) return;
  log_.open(log, std::ios::binary | std::ios::trunc);
  if (!log_) throw std::system_error(errno, std::generic_category(), log);
}

std::optional<int> Faults::before(int descriptor, const Operation& operation) {
  const std::lock_guard guard(lock_);
  const bool counts = plan_.on ? *plan_.on == operation.action : operation.action != Action::kRead;
  if (!counts) return {};
  const std::int64_t number = seen_++;
  if (plan_.after < 0 || number < plan_.after) return {};
  if (plan_.torn && number == plan_.after && operation.action == Action::kWrite) {
    const std::size_t half = operation.length / 2 / kSector * kSector;
    [[maybe_unused]] const auto written =
        ::pwrite(descriptor, operation.address, half, static_cast<off_t>(operation.offset));
  }
  if (plan_.error == 0) ::raise(SIGKILL);
  return plan_.error;
}

void Faults::started(unsigned device, std::uint64_t id, const Operation& operation) {
  if (!log_.is_open() || operation.action == Action::kRead) return;
  const std::lock_guard guard(lock_);
  const LogRecord record{device, static_cast<std::uint32_t>(operation.action), id, operation.offset,
                         operation.length};
  log_.write(reinterpret_cast<const char*>(&record), sizeof record);
  if (operation.action == Action::kWrite) {
    log_.write(reinterpret_cast<const char*>(operation.address),
               static_cast<std::streamsize>(operation.length));
  }
  log_.flush();
}

void Faults::done(unsigned device, std::uint64_t id) {
  if (!log_.is_open()) return;
  const std::lock_guard guard(lock_);
  const LogRecord record{device, kDone, id, 0, 0};
  log_.write(reinterpret_cast<const char*>(&record), sizeof record);
  log_.flush();
}

std::int64_t Faults::seen() const {
  const std::lock_guard guard(lock_);
  return seen_;
}

}  // namespace catchment::optimizer
