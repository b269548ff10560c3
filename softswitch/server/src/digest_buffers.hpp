// Bundles digests into lists and waits for acknowledgements (P4Runtime 1.4, "DigestEntry").
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "p4/v1/p4runtime.pb.h"

namespace catchment::server {

// A digest as the switch makes it: its members as byte strings.
using DigestMembers = std::vector<std::string>;

struct DigestBatch {
  std::uint32_t digest_id = 0;
  std::uint64_t list_id = 0;
  std::vector<DigestMembers> messages;  // all different
  std::int64_t timestamp_ns = 0;        // of the last one
};

// Not for several threads at once. Time comes in with every call, so that it can be tested.
class DigestBuffers {
 public:
  using Clock = std::chrono::steady_clock;
  using Configs = std::map<std::uint32_t, p4::v1::DigestEntry::Config>;

  // Replaces the configuration; digests that are not in it are not sent, and forgotten.
  void configure(const Configs& configs);

  // Adds a digest, unless the same one waits to be sent or acknowledged.
  void add(std::uint32_t digest_id, DigestMembers members, std::int64_t timestamp_ns,
           Clock::time_point now);

  // Returns the lists that are full or have waited long enough; each then waits to be acknowledged.
  // The oldest no longer do where more wait than a stream holds: their digests may come once more.
  std::vector<DigestBatch> take_due(Clock::time_point now);

  // Returns when to call take_due() next; nullopt: after the next add().
  std::optional<Clock::time_point> next_due() const;

  // Returns whether this list was waiting to be acknowledged.
  bool acknowledge(std::uint32_t digest_id, std::uint64_t list_id);

  // Forgets what waits to be sent or acknowledged.
  void clear();

 private:
  struct Sent {
    Clock::time_point when;
    std::vector<DigestMembers> messages;
    std::size_t bytes = 0;
  };
  using Lists = std::map<std::uint64_t, Sent>;  // by list id, and so by age
  struct Buffer {
    p4::v1::DigestEntry::Config config;
    std::vector<DigestMembers> waiting;
    std::size_t waiting_bytes = 0;
    std::int64_t last_timestamp_ns = 0;
    Clock::time_point first;
    Lists sent;
    std::size_t sent_bytes = 0;
    std::set<DigestMembers> known;  // waiting or sent
  };

  static Clock::time_point due(const Buffer& buffer);
  static void forget(Buffer& buffer, Lists::iterator list);
  static void expire(Buffer& buffer, Clock::time_point now);

  std::map<std::uint32_t, Buffer> buffers_;
  std::uint64_t next_list_id_ = 1;
};

}  // namespace catchment::server
