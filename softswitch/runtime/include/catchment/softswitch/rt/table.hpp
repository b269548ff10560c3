// Tables as the packet thread sees them: plain structures that the control side fills, and the
// inline lookup.
//
// A key is N words of 64 bits (fields packed by the compiler; KeyField says where). Every table is
// a set of tuples, one per mask, each an open-addressed hash of masked keys: an exact table has one
// tuple of all ones and no mask, lpm has one per prefix length, ternary one per mask in use. Range
// fields are not hashed but compared along the chain.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace catchment::softswitch::rt {

/// The place of a key field: `words` words from `word` on (least significant first), or within one
/// word from bit `shift`.
struct KeyField {
  std::uint32_t word = 0;
  std::uint32_t shift = 0;
  std::uint32_t words = 1;
  bool range = false;  // then `word` counts in the range values
};

/// An action with its arguments: each takes ceil(width / 64) words.
struct BoundAction {
  std::uint32_t action = 0;  // place in TableInfo::actions
  const std::uint64_t* data = nullptr;
};

struct MeterState;

struct SelectorGroup {
  const BoundAction* const* members = nullptr;  // by weight, only those that are up
  std::uint32_t count = 0;
};

/// An entry, or the default.
struct Row {
  const BoundAction* action = nullptr;  // nullptr: look at `group`
  const SelectorGroup* group = nullptr;
  const Row* next = nullptr;              // same masked key, smaller rank
  std::uint64_t rank = 0;                 // larger wins
  const std::uint64_t* ranges = nullptr;  // (low, high) per range field
  mutable std::uint64_t packets = 0;      // direct counter
  mutable std::uint64_t bytes = 0;
  mutable std::uint64_t last_hit_us = 0;
  MeterState* meter = nullptr;
};

/// Buckets of N key words and one Row pointer; a null pointer ends a probe.
struct HashIndex {
  const std::uint64_t* buckets = nullptr;
  std::uint64_t mask = 0;  // number of buckets - 1
};

struct Tuple {
  const std::uint64_t* mask = nullptr;
  HashIndex index;
  std::uint64_t max_rank = 0;
};

struct Table {
  HashIndex exact;
  const Tuple* tuples = nullptr;  // largest max_rank first
  std::size_t tuple_count = 0;
  const Row* default_row = nullptr;
};

inline constexpr std::uint64_t kHashSeed = 0x243F6A8885A308D3U;

inline std::uint64_t hash_word(std::uint64_t hash, std::uint64_t word) {
  const unsigned __int128 product =
      static_cast<unsigned __int128>(hash ^ word) * 0x9E3779B97F4A7C15U;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <std::size_t N>
inline std::uint64_t hash_key(const std::uint64_t* key) {
  std::uint64_t hash = kHashSeed;
  for (std::size_t i = 0; i < N; ++i) {
    hash = hash_word(hash, key[i]);
  }
  return hash;
}

template <std::size_t N>
inline const Row* probe(const HashIndex& index, const std::array<std::uint64_t, N>& key) {
  std::uint64_t at = hash_key<N>(key.data());
  for (;; ++at) {
    const std::uint64_t* bucket = index.buckets + (at & index.mask) * (N + 1);
    if (bucket[N] == 0) {
      return nullptr;
    }
    bool equal = true;
    for (std::size_t i = 0; i < N; ++i) {
      equal &= bucket[i] == key[i];
    }
    if (equal) {
      return reinterpret_cast<const Row*>(bucket[N]);
    }
  }
}

/// Looks a key up in a table whose fields are all exact. nullptr: a miss.
template <std::size_t N>
inline const Row* match_exact(const Table& table, const std::array<std::uint64_t, N>& key) {
  return probe<N>(table.exact, key);
}

/// Looks a key up in any other table, with R range fields. nullptr: a miss.
template <std::size_t N, std::size_t R>
inline const Row* match_tuples(const Table& table, const std::array<std::uint64_t, N>& key,
                               const std::array<std::uint64_t, R>& ranges) {
  const Row* best = nullptr;
  for (std::size_t t = 0; t < table.tuple_count; ++t) {
    const Tuple& tuple = table.tuples[t];
    if (best != nullptr && best->rank >= tuple.max_rank) {
      break;
    }
    std::array<std::uint64_t, N> masked;
    for (std::size_t i = 0; i < N; ++i) {
      masked[i] = key[i] & tuple.mask[i];
    }
    for (const Row* row = probe<N>(tuple.index, masked); row != nullptr; row = row->next) {
      bool inside = true;
      for (std::size_t r = 0; r < R; ++r) {
        inside &= row->ranges[2 * r] <= ranges[r] && ranges[r] <= row->ranges[2 * r + 1];
      }
      if (inside) {
        if (best == nullptr || row->rank > best->rank) {
          best = row;
        }
        break;
      }
    }
  }
  return best;
}

/// The action of a row; nullptr for a group without a live member.
inline const BoundAction* resolve(const Row& row, std::uint64_t selector_hash) {
  if (row.action != nullptr) {
    return row.action;
  }
  if (row.group == nullptr || row.group->count == 0) {
    return nullptr;
  }
  return row.group->members[selector_hash % row.group->count];
}

}  // namespace catchment::softswitch::rt
