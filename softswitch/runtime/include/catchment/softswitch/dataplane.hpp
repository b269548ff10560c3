// The switch as a control plane sees it: a compiled program, its tables and state, and the
// replication engine.
//
// Threads: any thread may call any method. One short lock guards the state; the packet thread takes
// it once per batch, a control call once per call (and gets it between two batches, never starved).
// Hooks run on the packet thread, under that lock: they must only hand the value over (a queue) and
// must not call back into the Dataplane.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catchment/softswitch/entities.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"

namespace catchment::softswitch {

/// Why the runtime, not the program, dropped a frame. A frame that the program drops (egress_spec
/// 511) counts as `program`.
enum class DropCause : std::uint8_t {
  parser,
  program,
  no_such_port,
  tx_full,
  too_long,
  no_program,
  loop_limit,
  no_group,
  step_limit
};
inline constexpr std::size_t kDropCauses = 9;

/// Name of a cause as statistics print it ("parser error", ...).
const char* drop_cause_name(DropCause cause);

struct PortStatistics {
  std::uint64_t rx_packets = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t drops[kDropCauses] =
      {};  // by cause; counted at the port where the frame came in, tx_full at the one it left by
};

struct DataplaneOptions {
  std::uint32_t cpu_port = 510;   // frames sent here go to the packet-in hook
  std::uint32_t drop_port = 511;  // egress_spec that drops
  std::uint64_t random_seed = 0;  // 0: from the system
  std::uint32_t max_passes = 64;  // resubmit + recirculate per frame, then dropped as loop_limit
  std::uint32_t max_frame_bytes = 9728;  // longest frame in or out
  /// Rounds of loops per frame, with all of its copies and passes, then dropped as step_limit.
  std::uint32_t max_steps = rt::kDefaultMaxSteps;
  /// The state lies in memory that other processes of this user can be let into, to run the program
  /// themselves.
  bool in_callers = false;
};

/// A frame that left the switch, in-process.
struct OutputFrame {
  std::uint32_t port = 0;
  std::string bytes;
};

struct CallersDoor;  // callers_door.hpp
class Packets;       // the packet thread's side (packets.hpp)

class Dataplane {
 public:
  explicit Dataplane(DataplaneOptions options = {});
  ~Dataplane();
  Dataplane(const Dataplane&) = delete;
  Dataplane& operator=(const Dataplane&) = delete;

  /// No packet is worked on while a Pause lives, and only the thread that made it may call the
  /// Dataplane: what that thread writes meanwhile, packets see as one change. Not to be nested.
  class Pause {
   public:
    explicit Pause(Dataplane& dataplane);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    class Held;
    std::unique_ptr<Held> held_;
  };

  // --- program
  // -----------------------------------------------------------------------------------------------------
  /// Opens a shared object that softswitch.build made and makes it the running program. All tables,
  /// state, multicast groups and clone sessions start anew. On error the running program goes on
  /// untouched.
  Status load(const std::string& shared_object);
  /// Opens and checks without putting it in force.
  static Status verify(const std::string& shared_object);
  [[nodiscard]] bool loaded() const;
  /// Describes the running program; nullptr before the first load. A caller that keeps the pointer
  /// keeps the description, also after another program is loaded.
  [[nodiscard]] std::shared_ptr<const ProgramInfo> info() const;
  [[nodiscard]] const DataplaneOptions& options() const;

  // --- tables
  // ------------------------------------------------------------------------------------------------------
  Status insert(const TableEntry& entry);
  /// Changes an entry. With `is_default` it sets the default action (or resets it, when no action
  /// is given).
  Status modify(const TableEntry& entry);
  Status remove(const TableEntry& key);
  /// `table_id` 0: every table. Empty `match` and no `is_default`: all entries; `is_default` set:
  /// the default entry; else the one entry of that key (and priority).
  Result<std::vector<TableEntry>> read(const TableEntry& filter) const;

  // --- action profiles
  // -----------------------------------------------------------------------------------------------
  Status insert(const ProfileMember& member);
  Status modify(const ProfileMember& member);
  Status remove(const ProfileMember& key);
  Result<std::vector<ProfileMember>> read(const ProfileMember& filter) const;  // ids 0: all
  Status insert(const ProfileGroup& group);
  Status modify(const ProfileGroup& group);
  Status remove(const ProfileGroup& key);
  Result<std::vector<ProfileGroup>> read(const ProfileGroup& filter) const;  // ids 0: all
  /// Members with this watch port are passed over while it is down.
  void set_port_up(std::uint32_t port, bool up);

  // --- replication engine
  // ----------------------------------------------------------------------------------------------
  Status insert(const MulticastGroup& group);
  Status modify(const MulticastGroup& group);
  Status remove(const MulticastGroup& key);
  [[nodiscard]] Result<std::vector<MulticastGroup>> read(
      const MulticastGroup& filter) const;  // id 0: all
  Status insert(const CloneSession& session);
  Status modify(const CloneSession& session);
  Status remove(const CloneSession& key);
  [[nodiscard]] Result<std::vector<CloneSession>> read(
      const CloneSession& filter) const;  // id 0: all

  // --- state
  // -------------------------------------------------------------------------------------------------------------
  /// `index` unset: every cell. Direct counters and meters go through TableEntry, or by the table's
  /// entry below.
  Result<std::vector<CounterCell>> read_counter(std::uint32_t counter_id,
                                                std::optional<std::uint64_t> index) const;
  Status write_counter(std::uint32_t counter_id, std::optional<std::uint64_t> index,
                       CounterValue value);
  Status write_direct_counter(const TableEntry& key, CounterValue value);
  Result<std::vector<RegisterCell>> read_register(std::uint32_t register_id,
                                                  std::optional<std::uint64_t> index) const;
  Status write_register(std::uint32_t register_id, std::optional<std::uint64_t> index,
                        const std::string& value);
  Result<std::vector<MeterCell>> read_meter(std::uint32_t meter_id,
                                            std::optional<std::uint64_t> index) const;
  /// `config` unset: back to the default (always green). The counts per colour stay.
  Status write_meter(std::uint32_t meter_id, std::optional<std::uint64_t> index,
                     std::optional<MeterConfig> config);
  Status write_direct_meter(const TableEntry& key, std::optional<MeterConfig> config);
  /// Sets the counts per colour back to zero.
  Status clear_meter_counts(std::uint32_t meter_id, std::optional<std::uint64_t> index);
  Status clear_direct_meter_counts(const TableEntry& key);
  Status write(const ValueSetEntry& entry);  // replaces the members
  Result<std::vector<ValueSetEntry>> read(const ValueSetEntry& filter) const;

  // --- hooks (see Threads above)
  // -------------------------------------------------------------------------------------------
  void on_packet_in(std::function<void(PacketIn&&)> hook);
  void on_digest(std::function<void(DigestMessage&&)> hook);
  void on_idle_timeout(std::function<void(IdleNotification&&)> hook);
  /// What log_msg() prints.
  void on_log(std::function<void(const std::string&)> hook);
  /// The hook hears, once a second at most, of frames that were dropped as step_limit: the loop's
  /// place in the program, the port, and how many there were since the last time.
  void on_step_limit(std::function<void(const std::string&)> hook);
  /// Looks for idle entries; called by the packet loop about every 10 ms, and by tests.
  void expire_idle(std::int64_t now_ns);

  // --- frames
  // -----------------------------------------------------------------------------------------------------------------
  /// Runs one frame through the program, as if it had come in by `port`, and returns what came out
  /// of every port (frames to the CPU port go to the hook when there is one, else they are
  /// returned). Also the packet-out path of a switch without ports; a switch with ports uses
  /// PortLoop::packet_out.
  Result<std::vector<OutputFrame>> inject(std::uint32_t port, std::string_view frame);
  [[nodiscard]] PortStatistics statistics(std::uint32_t port) const;
  /// What frames reach that does not lie in the state's own memory, in words; nothing, unless there
  /// is a bug. For tests.
  [[nodiscard]] std::vector<std::string> strays() const;
  /// The state's memory, to be handed to who is let in; -1 unless the option in_callers is set.
  [[nodiscard]] int state_descriptor() const;
  /// Bytes of the state's memory that are in use.
  [[nodiscard]] std::size_t state_bytes() const;

  /// How ports let callers in; nullptr unless the option in_callers is set.
  [[nodiscard]] CallersDoor* callers_door();
  /// The packet thread's door; for PortLoop and the benchmarks.
  Packets& packets();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace catchment::softswitch
