// The two TCP connections of a rank in a ring: from the rank before it, and to the next one.  Each
// is made again when it is lost; what was under way is lost then.
#pragma once

#include <netinet/in.h>

#include <catchment/shm/fork_guard.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "catchment/common/clock.hpp"
#include "greetings.hpp"
#include "private_socket.hpp"
#include "udp_address.hpp"

namespace catchment::host::ring {

enum class Transport : std::uint8_t { kTcp, kMptcp };

class RingLinks {
 public:
  // Listens at `local` and connects to `next`.  Throws std::system_error; a kernel without MPTCP
  // refuses kMptcp so.
  RingLinks(const UdpAddress& local, const UdpAddress& next, Transport transport,
            const Greeting& own);
  RingLinks(const RingLinks&) = delete;
  RingLinks& operator=(const RingLinks&) = delete;
  // Ends the connections, which forked children may have, too.
  ~RingLinks();

  // Accepts and connects where a connection is missing.
  void keep(Nanos now);
  // Both connections are there.
  bool joined() const { return sends_ && previous_.valid(); }
  // They were there once, and have not been made again within a moment.
  bool lost(Nanos now) const;

  // Queues bytes for the next rank, and drops them while there is no connection.
  void queue(std::span<const std::uint8_t> bytes);
  std::size_t backlog() const { return out_.size() - sent_; }
  void flush();
  // Appends what has come to `bytes`; true when there may be more.  What came before a new
  // connection is dropped from them.
  bool read(std::vector<std::uint8_t>& bytes);

  // Readable when a connection, or bytes, have come, or queued ones can leave.
  int descriptor() const { return events_.get(); }
  std::uint64_t errors() const { return errors_; }
  // How many connections were made so far.
  std::uint64_t made() const { return made_; }
  int last_error() const { return last_error_; }
  std::uint16_t port() const;

 private:
  PrivateSocket socket() const;
  void watch(const PrivateSocket& socket, std::uint32_t events, bool known);
  void accept_previous(Nanos now);
  void rest_listener(Nanos now, int error);
  void connect_next(Nanos now);
  // Whether the next rank's machine answers nothing.  One that takes nothing more, since the rank
  // is late to read, still says so.
  bool next_is_silent(Nanos now);
  void drop_next(int error);
  void drop_previous(int error);

  Transport transport_;
  Greeting own_;
  sockaddr_in next_address_{};
  PrivateSocket events_;
  PrivateSocket listener_;
  Greetings coming_;  // may become the connection from the rank before
  PrivateSocket previous_;
  PrivateSocket next_;
  shm::ForkGuard process_;
  bool sends_ = false;        // the connection to the next rank stands
  bool awaits_ = false;       // room to send is watched for
  Nanos joined_at_ = kNever;  // when they were last there
  Nanos connect_at_ = 0;
  Nanos accept_at_ = 0;  // when the listener is looked at again; 0: always
  Nanos look_at_ = 0;
  std::vector<std::uint8_t> out_;
  std::size_t sent_ = 0;
  bool restarted_ = false;
  std::uint64_t errors_ = 0;
  std::uint64_t made_ = 0;
  int last_error_ = 0;
};

}  // namespace catchment::host::ring
