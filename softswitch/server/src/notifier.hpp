// Carries packet-ins, digests and idle timeouts from the packet thread to the clients.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>

#include "arbiter.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "digest_buffers.hpp"
#include "schema.hpp"

namespace catchment::server {

// The switch's hooks only put the value into a bounded queue; a thread of its own makes messages of
// them and hands them to the primaries. What does not fit is dropped and counted.
class Notifier {
 public:
  Notifier(softswitch::Dataplane& dataplane, Arbiter& arbiter);
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Sets the P4Info that describes the switch's notices from now on; notices that wait are
  // forgotten.
  void use(std::shared_ptr<const Schema> schema);

  // Tells which digests clients have asked for.
  void configure(const DigestBuffers::Configs& configs);

  // Handles a client's acknowledgement, behind the digests that the program emitted before it; a
  // list that is not waiting for one is none of our business.
  void acknowledge(const p4::v1::DigestListAck& ack);

  std::uint64_t dropped() const;

 private:
  using Event = std::variant<softswitch::PacketIn, softswitch::DigestMessage,
                             softswitch::IdleNotification, p4::v1::DigestListAck>;

  using Events = std::deque<Event>;
  using Messages = std::deque<p4::v1::StreamMessageResponse>;

  void queue(Event event);
  void count_dropped();
  void run();
  Messages collect(const Events& events);
  void collect_digests(Messages& messages);

  softswitch::Dataplane& dataplane_;
  Arbiter& arbiter_;

  mutable std::mutex queue_mutex_;  // the packet thread takes it: held for moments only
  std::condition_variable changed_;
  Events events_;
  std::uint64_t dropped_ = 0;
  bool configured_ = false;
  bool ending_ = false;

  std::mutex state_mutex_;
  DigestBuffers digests_;
  std::shared_ptr<const Schema> schema_;

  std::thread thread_;
};

}  // namespace catchment::server
