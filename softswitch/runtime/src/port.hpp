// A port of the switch, below the P4 program: what the packet loop asks of every kind of port.
//
// Threads: one thread, the port's owner, calls receive(), arm() and check_link(). send() is called
// by one thread at a time, perhaps another one, perhaps while receive() or arm() runs, never while
// check_link() does. The rest is called while none of these runs.
//
// Waiting: descriptor() is readable when frames wait; the loop sleeps on it with epoll. A port that
// is cheaper to look at than to sleep on (memory shared with a peer) answers polled() with true.
// The loop then calls receive() again and again while frames come, without looking at the
// descriptor. Before it sleeps it calls arm(): the port asks its peer for a wake-up through the
// descriptor (an eventfd, say) from now on, looks once more, and returns false if a frame is there
// already. After a wake-up the loop calls check_link(), which takes the wake-up back (reads the
// eventfd), and receive().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "callers_door.hpp"
#include "catchment/softswitch/packets.hpp"
#include "catchment/softswitch/port_loop.hpp"
#include "catchment/softswitch/rt/engine.hpp"

namespace catchment::softswitch {

/// Most frames that one receive() hands out and one send() takes.
inline constexpr std::size_t kBatch = 64;

/// What a port is given when it is opened.
struct PortContext {
  std::uint32_t number = 0;           // goes into every InputFrame
  std::uint32_t max_frame_bytes = 0;  // longest frame in or out
  CallersDoor* door = nullptr;        // to let peers in; nullptr: none is
};

/// What one receive() saw besides frames.
struct Received {
  std::size_t frames = 0;
  std::size_t too_long = 0;         // longer than max_frame_bytes, dropped
  int error = 0;                    // errno: the port does not work at the moment; nothing waits: 0
  std::string notice;               // for an operator, said once; mostly empty
  std::vector<PassedOn> passed_on;  // by a peer that runs the program itself; stays as frames do
};

/// What one send() did. Frames that leave the list are those sent, refused and too long.
struct Sent {
  std::size_t frames = 0;     // taken off the list's front
  std::size_t delivered = 0;  // of these: on their way
  std::uint64_t bytes = 0;    // of those delivered
  std::size_t refused = 0;    // of these: no room, dropped
  std::size_t too_long = 0;   // of these: longer than the port takes
  bool full = false;          // the rest has to wait: until the descriptor is writable, or, if the
                              // port is polled, until a later turn
  int error = 0;              // errno: the port does not work at the moment
};

class Port {
 public:
  Port() = default;
  virtual ~Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// The port as an operator knows it: the text after NUMBER= on the command line.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Whether frames can pass.
  [[nodiscard]] virtual bool up() const = 0;
  /// Readable when frames wait; -1 while there is none. Changes only in a check_link() that
  /// has news.
  [[nodiscard]] virtual int descriptor() const = 0;

  /// Appends up to kBatch frames. Their bytes stay, and may be written to, until the next receive()
  /// or check_link(). Never blocks.
  virtual Received receive(std::vector<rt::InputFrame>& frames) = 0;
  /// Sends frames from the front of the list, up to kBatch. Their bytes are the caller's again when
  /// it returns. Never blocks. While the port is down: `error`, and the frames are dropped.
  virtual Sent send(std::span<const rt::OutFrame> frames) = 0;
  /// Lets the peer see what send() took, at the end of a turn; only for polled ports. Same rules.
  virtual void show() {}

  /// Looks whether the link came or went: called about every 50 ms, when the system reports a
  /// change of any interface, and after an error. Returns what an operator should know if something
  /// changed ("the interface is gone"), else nothing.
  virtual std::string check_link() = 0;

  [[nodiscard]] virtual bool polled() const { return false; }
  /// Called before the loop sleeps, for polled ports only; false: frames wait, the loop must not
  /// sleep.
  virtual bool arm() { return true; }

  /// Has all frames of the port pass through receive() and send() from now on. Called while none of
  /// these runs.
  virtual void keep_to_switch() {}

  /// What this kind of port counts beside frames in and out.
  [[nodiscard]] virtual PortIoStatistics io_statistics() const { return {}; }
};

}  // namespace catchment::softswitch
