// What the ranks of a ring say to each other first, and the connections that have come and not yet
// said it.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "private_socket.hpp"

namespace catchment::host::ring {

// What two neighbours must agree about.
struct Greeting {
  std::uint32_t gen = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t slots = 0;
  std::uint32_t lanes = 0;

  static constexpr std::size_t kBytes = 6 * sizeof(std::uint32_t);

  // As it goes over a connection: a magic word and the fields, each in network order.
  std::array<std::uint8_t, kBytes> bytes() const;
};

// Whether a call on a connection that failed so may succeed later.
inline bool is_passing(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == EINPROGRESS;
}

// Anybody may connect: who does not greet as expected never gets the place of a neighbour.
class Greetings {
 public:
  // As many connections may be silent at once; one more ends the oldest.
  static constexpr std::size_t kMost = 8;

  explicit Greetings(const Greeting& expected) : expected_(expected.bytes()) {}

  void add(PrivateSocket connection);
  // The connection that has greeted as expected since the last call, or an invalid one.  Ends those
  // that said something else, or have closed.
  PrivateSocket take();
  // Connections that were ended since what they said is of another ring, another run, or nobody's.
  std::uint64_t refused() const { return refused_; }

 private:
  struct Coming {
    PrivateSocket connection;
    std::size_t heard = 0;  // bytes of the greeting
  };
  enum class Said : std::uint8_t { kAll, kPart, kWrong, kClosed };

  Said listen(Coming& coming) const;

  std::array<std::uint8_t, Greeting::kBytes> expected_;
  std::deque<Coming> coming_;
  std::uint64_t refused_ = 0;
};

}  // namespace catchment::host::ring
