// One table as a Python object: a key of 64 bits, exact or ternary, and an action with one value.
// Any call may be told after how many allocations memory ends (scarce.hpp).
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "scarce.hpp"
#include "table_store.hpp"

void* operator new(std::size_t bytes) {
  catchment::softswitch::take_allocation();
  if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) {
    return block;
  }
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace catchment::softswitch {
namespace {

constexpr std::uint32_t kField = 1;
constexpr std::uint32_t kAction = 2;
constexpr std::uint32_t kParam = 3;
constexpr std::uint32_t kBits = 64;
constexpr std::uint64_t kSize = 1024;

ProgramInfo make_program(bool exact) {
  ProgramInfo program;
  program.actions = {{kAction, "set", {{kParam, "value", kBits}}}};
  TableInfo table;
  table.name = "table";
  table.fields = {{kField, "key", kBits, exact ? MatchKind::exact : MatchKind::ternary}};
  table.actions = {{kAction, true, true}};
  table.size = kSize;
  program.tables = {table};
  return program;
}

class Table {
 public:
  Table(bool exact, std::uint64_t sequence)
      : exact_(exact),
        program_(make_program(exact)),
        layout_{.key_words = 1, .range_fields = 0, .exact = exact, .fields = {rt::KeyField{}}},
        store_(program_, program_.tables[0], layout_, nullptr, memory_, sequence) {}

  /// Whether there was enough memory. Throws what the table says against the entry.
  bool insert(std::uint64_t key, std::uint64_t mask, std::int32_t priority, std::uint64_t value,
              std::uint64_t allocations) {
    TableEntry entry = entry_of(key, mask, priority);
    entry.action = ActionCall{kAction, {{kParam, bytes_of(value)}}};
    return scarce(allocations, [&] { return store_.insert(entry, 0); });
  }
  bool remove(std::uint64_t key, std::uint64_t mask, std::int32_t priority,
              std::uint64_t allocations) {
    const TableEntry entry = entry_of(key, mask, priority);
    return scarce(allocations, [&] { return store_.remove(entry); });
  }
  /// Makes the keys the members of the table, as if it were a value set.
  bool replace(const std::vector<std::uint64_t>& keys, std::uint64_t allocations) {
    std::vector<std::vector<FieldMatch>> members;
    for (const std::uint64_t key : keys) {
      members.push_back(entry_of(key, kEndless, 0).match);
    }
    return scarce(allocations, [&] { return store_.replace_members(members); });
  }
  /// The value of the entry that a key finds.
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t key) const {
    const rt::Row* const row = look_up(key);
    return row == nullptr ? std::nullopt : std::optional(row->action->data[0]);
  }
  [[nodiscard]] bool has(std::uint64_t key) const { return look_up(key) != nullptr; }
  /// How many entries a client is told of.
  [[nodiscard]] std::size_t entries() const {
    std::vector<TableEntry> out;
    static_cast<void>(store_.read({}, 0, out));
    return out.size();
  }
  [[nodiscard]] std::size_t state_bytes() const { return memory_.in_use(); }

 private:
  [[nodiscard]] const rt::Row* look_up(std::uint64_t key) const {
    const std::array<std::uint64_t, 1> words{key};
    return exact_ ? rt::match_exact<1>(store_.view(), words)
                  : rt::match_tuples<1, 0>(store_.view(), words, {});
  }
  [[nodiscard]] TableEntry entry_of(std::uint64_t key, std::uint64_t mask,
                                    std::int32_t priority) const {
    TableEntry entry;
    entry.match = {{kField, program_.tables[0].fields[0].kind, bytes_of(key),
                    exact_ ? std::string() : bytes_of(mask), 0}};
    entry.priority = priority;
    return entry;
  }
  bool exact_;
  ProgramInfo program_;
  rt::TableLayout layout_;
  ScarceMemory memory_;
  TableStore store_;
};

}  // namespace

PYBIND11_MODULE(_tables, module) {
  namespace py = pybind11;
  using namespace py::literals;
  bind_stores(module);
  module.attr("SEQUENCES") = TableStore::kSequences;
  py::class_<Table>(module, "Table")
      .def(py::init<bool, std::uint64_t>(), "exact"_a = false, "sequence"_a = 0)
      .def("insert", &Table::insert, "key"_a, "mask"_a, "priority"_a, "value"_a,
           "allocations"_a = kEndless)
      .def("remove", &Table::remove, "key"_a, "mask"_a, "priority"_a, "allocations"_a = kEndless)
      .def("replace", &Table::replace, "keys"_a, "allocations"_a = kEndless)
      .def("find", &Table::find)
      .def("has", &Table::has)
      .def("entries", &Table::entries)
      .def("state_bytes", &Table::state_bytes);
}

}  // namespace catchment::softswitch
