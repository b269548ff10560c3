// The hash structures behind a table: tuples of masked keys, kept as rt::Table wants to see them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "catchment/softswitch/rt/table.hpp"
#include "state_memory.hpp"

namespace catchment::softswitch {

/// Open-addressed hash from a key of `words` words to the chain of rows that have it.
class RowHash {
 public:
  RowHash(std::size_t words, StateMemory& memory);

  /// Links the row into its key's chain, largest rank first. When memory ends (std::bad_alloc),
  /// all is as before.
  void insert(std::span<const std::uint64_t> key, rt::Row& row);
  void remove(std::span<const std::uint64_t> key, rt::Row& row);
  [[nodiscard]] rt::HashIndex view() const { return {buckets_.data(), capacity_ - 1}; }

 private:
  [[nodiscard]] std::uint64_t home(const std::uint64_t* key) const;
  [[nodiscard]] std::uint64_t* bucket(std::uint64_t at) {
    return buckets_.data() + (at & (capacity_ - 1)) * (words_ + 1);
  }
  [[nodiscard]] std::uint64_t* find(const std::uint64_t* key);
  void grow();
  void erase(std::uint64_t* hole);

  std::size_t words_;
  std::uint64_t capacity_ = 8;
  std::uint64_t used_ = 0;
  std::pmr::vector<std::uint64_t> buckets_;
};

class MatchIndex {
 public:
  MatchIndex(std::size_t words, bool exact, StateMemory& memory);

  /// `key` is already masked. An exact index ignores `mask`. When memory ends (std::bad_alloc), all
  /// is as before, and so is what was published; else that is void until it is published anew.
  void insert(std::span<const std::uint64_t> key, std::span<const std::uint64_t> mask,
              rt::Row& row);
  void remove(std::span<const std::uint64_t> key, std::span<const std::uint64_t> mask,
              rt::Row& row);
  /// Writes all but the default row. Needs no memory. The ranks of all rows may have changed since
  /// the last time, their order may not.
  void publish(rt::Table& table);

 private:
  struct ByRank {
    bool operator()(const rt::Row* a, const rt::Row* b) const { return a->rank < b->rank; }
  };
  using Ranked = std::multiset<const rt::Row*, ByRank>;
  struct TupleStore {
    std::pmr::vector<std::uint64_t> mask;
    RowHash rows;
    Ranked ranked;
  };
  using Tuples = std::vector<std::unique_ptr<TupleStore>>;
  [[nodiscard]] Tuples::iterator find(std::span<const std::uint64_t> mask);

  StateMemory* memory_;
  std::size_t words_;
  bool exact_;
  RowHash exact_rows_;
  Tuples tuples_;
  std::pmr::vector<rt::Tuple> view_;  // has room for all of them
};

}  // namespace catchment::softswitch
