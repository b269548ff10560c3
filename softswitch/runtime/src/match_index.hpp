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

  /// Links the row into its key's chain, largest rank first.
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

  /// `key` is already masked. An exact index ignores `mask`.
  void insert(std::span<const std::uint64_t> key, std::span<const std::uint64_t> mask,
              rt::Row& row);
  void remove(std::span<const std::uint64_t> key, std::span<const std::uint64_t> mask,
              rt::Row& row);
  /// Writes all but the default row.
  void publish(rt::Table& table);

 private:
  struct TupleStore {
    std::pmr::vector<std::uint64_t> mask;
    RowHash rows;
    std::multiset<std::uint64_t> ranks;
  };

  StateMemory* memory_;
  std::size_t words_;
  bool exact_;
  RowHash exact_rows_;
  std::vector<std::unique_ptr<TupleStore>> tuples_;
  std::pmr::vector<rt::Tuple> view_;
};

}  // namespace catchment::softswitch
