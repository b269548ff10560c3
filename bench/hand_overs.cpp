// hand-overs WAY BYTES ROUNDS
//
// What an all-reduce of two ranks costs without a protocol: two threads, each on a processor of its
// own, turn fp32 into lanes, add them up in slots and turn the sums back, as ranks do that run the
// switch's program, with as many lanes and slots. There are no headers, tables, timers or
// exponents. Prints the median time of a round, in seconds, as one line of JSON.
//
//   copies     whoever comes second leaves the sum in its slot and in a ring for each rank
//   locked     the same, eight vectors at a time under one lock
//   shared     whoever comes second leaves the sum in its slot and where both read it
//   moved      only where both read it
//   slots      only in its slot, where both read it
//   converted  the same, and fp32 becomes lanes where it is added, not before
//   direct     as "copies", but fp32 becomes lanes where it is added, and whoever comes second has
//              the sum as fp32 at once, not by its ring
//   word       no vectors: one word goes there and back; BYTES is of no account
#include <pthread.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catchment/common/cache_line.hpp"
#include "catchment/common/processor.hpp"

namespace {

using catchment::kCacheLine;
using catchment::Processor;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLanes = 1024;
constexpr std::size_t kSlots = 256;
constexpr std::size_t kBatch = 8;  // vectors that are sent before the next sums are taken
constexpr float kScale = 1024.0F;

enum class Way { kCopies, kLocked, kShared, kMoved, kSlots, kConverted, kDirect, kWord };

/// Whether both ranks read the slot itself.
bool reads_slots(Way way) { return way == Way::kSlots || way == Way::kConverted; }

struct alignas(kCacheLine) Word {
  std::atomic<std::uint32_t> value{0};
};

struct alignas(kCacheLine) Cell {
  std::array<std::byte, 2 * kCacheLine>
      header;  // which nobody fills; two cells do not share their sets
  std::array<std::uint32_t, kLanes> lanes;
};

/// A window of vectors, and the number of the vector, from one on, that each has last.
struct Window {
  explicit Window(std::size_t size) : cells(size), numbers(size) {}

  Cell& cell(std::uint32_t vector) { return cells[vector % cells.size()]; }
  bool has(std::uint32_t vector) const {
    return numbers[vector % numbers.size()].value.load(std::memory_order_acquire) == vector + 1;
  }
  void publish(std::uint32_t vector) {
    numbers[vector % numbers.size()].value.store(vector + 1, std::memory_order_release);
  }

  std::vector<Cell> cells;
  std::vector<Word> numbers;
};

/// What both ranks see. A rank may be a window ahead of the other.
struct Shared {
  explicit Shared(Way way)
      : slots(reads_slots(way) ? 2 * kSlots : kSlots), arrivals(slots.cells.size()) {}

  Window slots;
  std::vector<Word> arrivals;
  std::array<Window, 2> rings{Window(kSlots), Window(kSlots)};
  Window sums{2 * kSlots};
  Word lock;
};

std::uint32_t lane(float value) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(value * kScale));
}

void quantize(const float* values, Cell& cell) {
  for (std::size_t i = 0; i < kLanes; ++i) cell.lanes[i] = __builtin_bswap32(lane(values[i]));
}

void dequantize(const Cell& cell, float* values) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    values[i] =
        static_cast<float>(static_cast<std::int32_t>(__builtin_bswap32(cell.lanes[i]))) / kScale;
  }
}

void dequantize_slot(const Cell& slot, float* values) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    values[i] = static_cast<float>(static_cast<std::int32_t>(slot.lanes[i])) / kScale;
  }
}

void assign(Cell& slot, const Cell& vector) {
  for (std::size_t i = 0; i < kLanes; ++i) slot.lanes[i] = __builtin_bswap32(vector.lanes[i]);
}

void assign(Cell& slot, const float* values) {
  for (std::size_t i = 0; i < kLanes; ++i) slot.lanes[i] = lane(values[i]);
}

void add(Cell& slot, const Cell& vector) {
  for (std::size_t i = 0; i < kLanes; ++i) slot.lanes[i] += __builtin_bswap32(vector.lanes[i]);
}

void add(Cell& slot, const float* values) {
  for (std::size_t i = 0; i < kLanes; ++i) slot.lanes[i] += lane(values[i]);
}

/// `sum` may be `vector`, so the compiler is told that lanes do not meet other lanes.
void add(Cell& slot, const Cell& vector, Cell& sum) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < kLanes; ++i) {
    slot.lanes[i] += __builtin_bswap32(vector.lanes[i]);
    sum.lanes[i] = __builtin_bswap32(slot.lanes[i]);
  }
}

/// The slot keeps what was first in it.
void move(const Cell& slot, const Cell& vector, Cell& sum) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    sum.lanes[i] = __builtin_bswap32(slot.lanes[i] + __builtin_bswap32(vector.lanes[i]));
  }
}

/// Both forms of this rank's lanes: as they are kept to be sent again, and as they are added.
void keep(Cell& kept, const float* values, Cell& lanes) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < kLanes; ++i) {
    lanes.lanes[i] = lane(values[i]);
    kept.lanes[i] = __builtin_bswap32(lanes.lanes[i]);
  }
}

/// The same, and the sums as they leave, as they stay, and as fp32 in place of the values.
void add(const Cell& slot, Cell& kept, float* values, Cell& lanes, Cell& sum) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::uint32_t own = lane(values[i]);
    kept.lanes[i] = __builtin_bswap32(own);
    lanes.lanes[i] = slot.lanes[i] + own;
    sum.lanes[i] = __builtin_bswap32(lanes.lanes[i]);
    values[i] = static_cast<float>(static_cast<std::int32_t>(lanes.lanes[i])) / kScale;
  }
}

class Rank {
 public:
  Rank(Shared& shared, int rank, Way way, std::size_t vectors)
      : shared_(shared), way_(way), rank_(rank), kept_(kSlots), values_(vectors * kLanes) {}

  void fill() { std::ranges::fill(values_, static_cast<float>(rank_ + 1)); }

  bool is_right() const {
    return std::ranges::all_of(values_, [](float value) { return value == 3.0F; });
  }

  /// One all-reduce; both ranks call it as often.
  void round() {
    const std::size_t count = values_.size() / kLanes;
    std::size_t sent = 0;
    for (std::size_t received = 0; received < count;) {
      const std::size_t batch = std::min({kBatch, count - sent, received + kSlots - sent});
      for (std::size_t i = sent; i < sent + batch && !converts_late(); ++i) {
        quantize(at(i), kept(i));
      }
      if (batch > 0) send(sent, batch);
      sent += batch;
      Window& sums = reads_one_sum() ? shared_.sums : shared_.rings[rank_];
      while (received < sent && (is_there(received) || sums.has(number(received)))) {
        if (reads_slots(way_)) {
          dequantize_slot(shared_.slots.cell(number(received)), at(received));
        } else if (!is_there(received)) {
          dequantize(sums.cell(number(received)), at(received));
        }
        ++received;
      }
    }
    done_ += static_cast<std::uint32_t>(count);
  }

 private:
  bool converts_late() const { return way_ == Way::kConverted || way_ == Way::kDirect; }
  /// Whether this rank has made the sum of a vector, and has it.
  bool is_there(std::size_t vector) const {
    return way_ == Way::kDirect && made_[number(vector) % kSlots] == number(vector) + 1;
  }
  bool reads_one_sum() const {
    return way_ == Way::kShared || way_ == Way::kMoved || reads_slots(way_);
  }
  std::uint32_t number(std::size_t vector) const {
    return done_ + static_cast<std::uint32_t>(vector);
  }
  float* at(std::size_t vector) { return values_.data() + vector * kLanes; }
  Cell& kept(std::size_t vector) { return kept_[number(vector) % kSlots]; }

  void send(std::size_t first, std::size_t batch) {
    const bool locked = way_ == Way::kLocked;
    while (locked && shared_.lock.value.exchange(1, std::memory_order_acquire) != 0)
      Processor::relax();
    for (std::size_t i = first; i < first + batch; ++i) arrive(number(i), kept(i), at(i));
    if (locked) shared_.lock.value.store(0, std::memory_order_release);
  }

  void arrive(std::uint32_t vector, Cell& own, float* values) {
    Cell& slot = shared_.slots.cell(vector);
    Word& arrivals = shared_.arrivals[vector % shared_.arrivals.size()];
    const bool first = arrivals.value.fetch_add(1) % 2 == 0;
    if (way_ == Way::kDirect) return first ? begin(vector, own, values) : end(vector, own, values);
    if (first) {
      way_ == Way::kConverted ? assign(slot, values) : assign(slot, own);
      return shared_.slots.publish(vector);
    }
    while (!shared_.slots.has(vector)) Processor::relax();
    if (reads_slots(way_)) {
      way_ == Way::kConverted ? add(slot, values) : add(slot, own);
      return shared_.sums.publish(vector);
    }
    if (reads_one_sum()) {
      Cell& sum = shared_.sums.cell(vector);
      way_ == Way::kMoved ? move(slot, own, sum) : add(slot, own, sum);
      return shared_.sums.publish(vector);
    }
    add(slot, own, own);
    for (Window& ring : shared_.rings) {
      ring.cell(vector).lanes = own.lanes;
      ring.publish(vector);
    }
  }

  /// The two halves of "direct". What crosses is made in the nearest cache and copied from there: a
  /// loop that reads lines of another processor and writes lines to it waits for each of them.
  void begin(std::uint32_t vector, Cell& own, const float* values) {
    keep(own, values, lanes_);
    shared_.slots.cell(vector).lanes = lanes_.lanes;
    shared_.slots.publish(vector);
  }
  void end(std::uint32_t vector, Cell& own, float* values) {
    Cell& slot = shared_.slots.cell(vector);
    while (!shared_.slots.has(vector)) Processor::relax();
    add(slot, own, values, lanes_, sum_);
    slot.lanes = lanes_.lanes;
    Window& ring = shared_.rings[1 - rank_];
    ring.cell(vector).lanes = sum_.lanes;
    ring.publish(vector);
    made_[vector % kSlots] = vector + 1;
  }

  Shared& shared_;
  Way way_;
  int rank_;
  std::uint32_t done_ = 0;  // vectors of the rounds before
  std::vector<Cell> kept_;
  std::vector<float> values_;
  Cell lanes_, sum_;
  std::vector<std::uint32_t> made_ = std::vector<std::uint32_t>(kSlots);  // as Window::numbers
};

std::vector<int> processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> list;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) list.push_back(processor);
  }
  if (list.size() < 2) throw std::runtime_error("two processors are needed");
  return list;
}

void stay_on(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  pthread_setaffinity_np(pthread_self(), sizeof only, &only);
}

double median_round(Way way, std::size_t bytes, int rounds) {
  const std::vector<int> places = processors();
  const std::size_t vectors = std::max<std::size_t>(1, bytes / (kLanes * sizeof(float)));
  Shared shared(way);
  std::vector<double> seconds;
  std::atomic<bool> right = true;
  std::barrier both(2);
  const auto rank = [&](int number) {
    stay_on(places[static_cast<std::size_t>(number)]);
    Rank self(shared, number, way, vectors);
    for (int i = 0; i < rounds; ++i) {
      self.fill();
      both.arrive_and_wait();
      const auto begun = Clock::now();
      self.round();
      if (number == 0)
        seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
    }
    if (!self.is_right()) right = false;
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  if (!right) throw std::runtime_error("a sum is wrong");
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

/// Seconds that a word takes to the other processor and back.
double round_trip(int rounds) {
  const std::vector<int> places = processors();
  Word word;
  const auto answer = [&](std::uint32_t first) {
    const auto last = first + 2 * static_cast<std::uint32_t>(rounds);
    for (std::uint32_t number = first; number < last; number += 2) {
      while (word.value.load(std::memory_order_acquire) != number) Processor::relax();
      word.value.store(number + 1, std::memory_order_release);
    }
  };
  std::thread other([&] {
    stay_on(places[1]);
    answer(1);
  });
  stay_on(places[0]);
  const auto begun = Clock::now();
  answer(0);
  other.join();
  return std::chrono::duration<double>(Clock::now() - begun).count() / rounds;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What an all-reduce of two ranks costs without a protocol.");
  Way way = Way::kCopies;
  std::size_t bytes = 0;
  int rounds = 1;
  const std::map<std::string, Way> ways{{"copies", Way::kCopies}, {"moved", Way::kMoved},
                                        {"slots", Way::kSlots},   {"converted", Way::kConverted},
                                        {"locked", Way::kLocked}, {"shared", Way::kShared},
                                        {"direct", Way::kDirect}, {"word", Way::kWord}};
  app.add_option("way", way)->required()->transform(CLI::CheckedTransformer(ways));
  app.add_option("bytes", bytes)
      ->required()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 32));
  app.add_option("rounds", rounds)->required()->check(CLI::Range(1, 1'000'000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    const double seconds =
        way == Way::kWord ? round_trip(rounds) : median_round(way, bytes, rounds);
    std::printf("{\"seconds\": %.9f}\n", seconds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hand-overs: %s\n", error.what());
    return 1;
  }
  return 0;
}
