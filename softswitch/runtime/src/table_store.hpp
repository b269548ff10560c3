// One table: its entries as the control plane wrote them, and the structures the packet thread
// looks them up in.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "action_codec.hpp"
#include "catchment/softswitch/rt/program.hpp"
#include "match_index.hpp"
#include "profile_store.hpp"

namespace catchment::softswitch {

/// What throws std::bad_alloc leaves the table as it was.
class TableStore {
 public:
  /// `profile` may be nullptr. Entries are numbered in the order that they are inserted in, from
  /// `sequence` on, which is at most kSequences.
  TableStore(const ProgramInfo& program, const TableInfo& info, const rt::TableLayout& layout,
             ProfileStore* profile, StateMemory& memory, std::uint64_t sequence = 0);

  /// Numbers of entries are below it: when they run out, all entries are numbered anew.
  static constexpr std::uint64_t kSequences = std::uint64_t{1} << 32;

  /// `initial`: from the program itself, so that const tables take it.
  Status insert(const TableEntry& entry, std::uint64_t now_us, bool initial = false);
  Status modify(const TableEntry& entry, std::uint64_t now_us);
  Status remove(const TableEntry& key);
  /// Sets the default entry; without an action it goes back to the program's own.
  Status set_default(const TableEntry& entry, bool initial = false);
  /// Appends what the filter selects (see Dataplane::read).
  Status read(const TableEntry& filter, std::uint64_t now_us, std::vector<TableEntry>& out) const;
  Status write_counter(const TableEntry& key, CounterValue value);
  Status write_meter(const TableEntry& key, std::optional<MeterConfig> config,
                     std::uint64_t now_us);
  Status clear_meter_counts(const TableEntry& key);

  /// Replaces the members of a value set, whose rows have no action.
  Status replace_members(const std::vector<std::vector<FieldMatch>>& members);

  [[nodiscard]] const rt::Table& view() const { return *view_; }
  [[nodiscard]] const TableInfo& info() const { return info_; }
  /// Adds what each entry's action set will be while these ports are down.
  void prepare(const DownPorts& down, PortChanges& changes) const;
  void set_down_ports(DownPorts&& down) noexcept { down_.swap(down); }
  /// Calls `report` once for every entry that has been idle for its timeout.
  void expire(std::uint64_t now_us, const std::function<void(const TableEntry&)>& report);

 private:
  struct Key {
    Words key;
    Words mask;
    Words ranges;
    std::int32_t priority = 0;
    std::uint32_t prefix_len = 0;
    std::vector<FieldMatch> canonical;

    [[nodiscard]] std::string identity() const;
  };
  /// What frames see of an entry besides its action.
  struct Shown {
    using allocator_type = std::pmr::polymorphic_allocator<>;
    explicit Shown(allocator_type memory) : ranges(memory) {}
    rt::Row row;
    rt::MeterState meter;
    std::pmr::vector<std::uint64_t> ranges;
  };
  struct Stored {
    explicit Stored(StateMemory& memory)
        : shown(make_in<Shown>(memory)), row(shown->row), meter(shown->meter) {}
    InState<Shown> shown;
    rt::Row& row;
    rt::MeterState& meter;
    Key key;
    TableEntry entry;
    InState<StoredAction> action;                 // direct action
    std::vector<InState<StoredAction>> one_shot;  // one-shot members
    InState<GroupActions> one_shot_group;
    std::list<Stored*>::iterator place;
    std::uint64_t idle_reported_us = 0;  // when last; reported anew after another timeout
  };

  /// Entries, and what finds them.
  struct Entries {
    Entries(const rt::TableLayout& layout, StateMemory& memory, std::uint64_t first)
        : index(layout.key_words, layout.exact, memory), sequence(first) {}

    MatchIndex index;
    std::unordered_map<std::string, std::unique_ptr<Stored>> rows;
    std::list<Stored*> order;  // of insertion
    std::uint64_t sequence;    // of the next one
  };

  void link(std::unique_ptr<Stored> stored, Entries& entries) const;
  [[nodiscard]] std::uint64_t rank_of(const Key& key, std::uint64_t sequence) const;
  void renumber();
  Result<Key> make_key(const TableEntry& entry) const;
  Status match_field(const TableEntry& entry, std::size_t index, Key& key) const;
  void put(Words& words, const rt::KeyField& place, const Words& value) const;
  Status bind(Stored& stored, const TableAction& action, ActionPlace place);
  Status bind_one_shot(Stored& stored, const OneShot& set);
  static GroupActions::Expanded expand_one_shot(const Stored& stored, const DownPorts& down);
  void count_uses(const Stored& stored, int change);
  void set_meter(Stored& stored, const std::optional<MeterConfig>& config, std::uint64_t now_us);
  [[nodiscard]] Result<Stored*> find(const TableEntry& key) const;
  [[nodiscard]] TableEntry describe(const Stored& stored, std::uint64_t now_us) const;
  [[nodiscard]] Status check_writable(const char* verb) const;
  [[nodiscard]] Status check_not_const(const Stored& stored, const char* verb) const;

  const ProgramInfo& program_;
  const TableInfo& info_;
  const rt::TableLayout& layout_;
  ProfileStore* profile_;
  StateMemory& memory_;

  bool needs_priority_ = false;
  Entries entries_;
  std::unique_ptr<Stored> default_;
  TableAction initial_default_;
  DownPorts down_;
  InState<rt::BoundAction> member_;  // what rows of value sets have for an action
  InState<rt::Table> view_;
};

/// Puts a meter to work from now on; unset: always green.
void configure_meter(rt::MeterState& state, const std::optional<MeterConfig>& config,
                     std::uint64_t now_us);
MeterCounts counts_of(const rt::MeterState& state);
void clear_counts(rt::MeterState& state);

}  // namespace catchment::softswitch
