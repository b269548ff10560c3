#include "match_index.hpp"

#include <algorithm>

namespace catchment::softswitch {

RowHash::RowHash(std::size_t words, StateMemory& memory)
    : words_(words), buckets_(capacity_ * (words + 1), 0, &memory) {}

std::uint64_t RowHash::home(const std::uint64_t* key) const {
  std::uint64_t hash = rt::kHashSeed;
  for (std::size_t i = 0; i < words_; ++i) {
    hash = rt::hash_word(hash, key[i]);
  }
  return hash;
}

/// The key's bucket, or the empty one where it would go.
std::uint64_t* RowHash::find(const std::uint64_t* key) {
  for (std::uint64_t at = home(key);; ++at) {
    std::uint64_t* found = bucket(at);
    if (found[words_] == 0 || std::equal(key, key + words_, found)) {
      return found;
    }
  }
}

void RowHash::grow() {
  std::pmr::vector<std::uint64_t> other(2 * capacity_ * (words_ + 1), 0, buckets_.get_allocator());
  other.swap(buckets_);
  capacity_ *= 2;
  for (std::size_t i = 0; i < other.size(); i += words_ + 1) {
    if (other[i + words_] != 0) {
      std::copy_n(other.data() + i, words_ + 1, find(other.data() + i));
    }
  }
}

void RowHash::insert(std::span<const std::uint64_t> key, rt::Row& row) {
  if (2 * (used_ + 1) > capacity_) {
    grow();
  }
  std::uint64_t* found = find(key.data());
  if (found[words_] == 0) {
    std::copy(key.begin(), key.end(), found);
    ++used_;
  }
  auto* head = reinterpret_cast<rt::Row*>(found[words_]);
  if (head == nullptr || head->rank < row.rank) {
    row.next = head;
    found[words_] = reinterpret_cast<std::uint64_t>(&row);
    return;
  }
  rt::Row* before = head;
  while (before->next != nullptr && before->next->rank >= row.rank) {
    before = const_cast<rt::Row*>(before->next);
  }
  row.next = before->next;
  before->next = &row;
}

void RowHash::remove(std::span<const std::uint64_t> key, rt::Row& row) {
  std::uint64_t* found = find(key.data());
  auto* head = reinterpret_cast<rt::Row*>(found[words_]);
  if (head != &row) {
    rt::Row* before = head;
    while (before->next != &row) {
      before = const_cast<rt::Row*>(before->next);
    }
    before->next = row.next;
    return;
  }
  found[words_] = reinterpret_cast<std::uint64_t>(row.next);
  if (row.next == nullptr) {
    --used_;
    erase(found);
  }
}

/// Moves later members of the probe run back over an emptied bucket, so that no probe ends too
/// early.
void RowHash::erase(std::uint64_t* hole) {
  const std::size_t stride = words_ + 1;
  auto at = static_cast<std::uint64_t>(hole - buckets_.data()) / stride;
  for (std::uint64_t next = at + 1;; ++next) {
    std::uint64_t* found = bucket(next);
    if (found[words_] == 0) {
      break;
    }
    const std::uint64_t distance = (next - home(found)) & (capacity_ - 1);
    if (distance >= next - at) {
      std::copy_n(found, stride, bucket(at));
      at = next;
    }
  }
  std::fill_n(bucket(at), stride, 0);
}

MatchIndex::MatchIndex(std::size_t words, bool exact, StateMemory& memory)
    : memory_(&memory), words_(words), exact_(exact), exact_rows_(words, memory), view_(&memory) {}

MatchIndex::Tuples::iterator MatchIndex::find(std::span<const std::uint64_t> mask) {
  return std::ranges::find_if(tuples_,
                              [&](const auto& t) { return std::ranges::equal(t->mask, mask); });
}

void MatchIndex::insert(std::span<const std::uint64_t> key, std::span<const std::uint64_t> mask,
                        rt::Row& row) {
  if (exact_) {
    exact_rows_.insert(key, row);
    return;
  }
  // In either case the last step that needs memory is the first that changes what is published.
  Ranked one{&row};
  if (const auto found = find(mask); found != tuples_.end()) {
    (*found)->rows.insert(key, row);
    (*found)->ranked.merge(one);
    return;
  }
  auto fresh = std::make_unique<TupleStore>(
      TupleStore{{mask.begin(), mask.end(), memory_}, RowHash(words_, *memory_), std::move(one)});
  fresh->rows.insert(key, row);
  tuples_.reserve(tuples_.size() + 1);
  view_.reserve(tuples_.size() + 1);
  tuples_.push_back(std::move(fresh));
}

void MatchIndex::remove(std::span<const std::uint64_t> key, std::span<const std::uint64_t> mask,
                        rt::Row& row) {
  if (exact_) {
    exact_rows_.remove(key, row);
    return;
  }
  const auto found = find(mask);
  (*found)->rows.remove(key, row);
  (*found)->ranked.erase((*found)->ranked.find(&row));
  if ((*found)->ranked.empty()) {
    tuples_.erase(found);
  }
}

void MatchIndex::publish(rt::Table& table) {
  table.exact = exact_rows_.view();
  view_.clear();
  for (const auto& t : tuples_) {
    view_.push_back({t->mask.data(), t->rows.view(), (*t->ranked.rbegin())->rank});
  }
  std::ranges::sort(view_, std::greater{}, &rt::Tuple::max_rank);
  table.tuples = view_.data();
  table.tuple_count = view_.size();
}

}  // namespace catchment::softswitch
