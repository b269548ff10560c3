// How frames leave and arrive: UDP, or memory shared with a switch on this machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "wire.hpp"

namespace catchment::host {

// What became of queued frames: sent, but for those that a full port has no room for; or all are
// queued as they were.
enum class Flushed : std::uint8_t { kAll, kFull, kLater };

class Port {
 public:
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  virtual ~Port() = default;

  // Room for one frame, or nullptr when the port takes no more for now.
  virtual std::uint8_t* stage() = 0;
  // Queues what was written to the staged room, followed by a copy of `rest`, which fits the room.
  virtual void commit(std::size_t bytes, std::span<const std::uint8_t> rest) = 0;
  void commit(std::size_t bytes) { commit(bytes, {}); }
  // Queues a frame that lies elsewhere, not in the staged room, and stays as it is until it has
  // been flushed, behind kFront bytes that the port may write to: some ports copy nothing then.
  // Whether receive_own() has something.
  virtual bool commit_in_place(std::span<std::uint8_t> frame) {
    commit(0, frame);
    return false;
  }
  static constexpr std::size_t kFront = wire::kHeaderOffset;
  // Sends what is queued; false when the port is full: wait until it is writable.
  virtual bool flush() = 0;
  // The same where no other process has to be waited for.
  virtual Flushed flush_if_free() { return flush() ? Flushed::kAll : Flushed::kFull; }
  // Drops what a full port has left queued: what lies behind a head will not stay as it is.
  virtual void discard() {}

  // The frames that have arrived, at most one batch; valid until the next call.
  virtual std::span<const std::span<const std::uint8_t>> receive() = 0;
  // The next of the frames that this port's stream has sent to itself, where the switch's program
  // runs in this process: it may overtake frames that receive() has not returned. Valid until the
  // next call. Nothing: there is none, or receive() returns it in its turn.
  virtual std::optional<std::span<const std::uint8_t>> receive_own() { return std::nullopt; }
  // The last receive() returned as much as it can: more may be waiting.
  virtual bool more() const = 0;

  // Called before the thread sleeps on the descriptor; `full`: it sleeps until the port takes more,
  // too.  False: there is something to do already.  A port that is cheaper to look at than to sleep
  // on looks a while, until `stop` is not 0.
  virtual bool may_sleep([[maybe_unused]] bool full,
                         [[maybe_unused]] const std::atomic<int>& stop) {
    return true;
  }

  // Largest frame that the path to the switch takes.
  virtual std::size_t path_bytes() const = 0;
  // Readable when frames have arrived, writable when a port that was full takes more: for epoll.
  virtual int descriptor() const = 0;
  // Errors that the network reported so far, and the last one (errno), 0 when there was none.
  virtual std::uint64_t errors() const = 0;
  virtual int last_error() const = 0;
  // What is sent arrives, however late, as long as the connections last that carry it.
  virtual bool lossless() const { return false; }
  // How many connections were made so far; what was under way when one broke is lost.
  virtual std::uint64_t connections() const { return 0; }
  // Whether the port tells when the switch goes.
  virtual bool tells_absence() const { return false; }
  // The switch is known to be gone for now, and what is known about it.
  virtual bool absent() const { return false; }
  virtual std::string absence() const { return {}; }
  // Frames dropped because they did not come from the switch.
  virtual std::uint64_t foreign() const = 0;
  // Frames dropped because they had no tag, or not the right one, where frames have tags.
  virtual std::uint64_t forged() const { return 0; }
};

}  // namespace catchment::host
