// How a peer gets attached: it asks the switch for the port, and again, after pauses that grow,
// when that failed or the switch has been away.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/shm/bell.hpp"
#include "catchment/shm/channel.hpp"
#include "catchment/shm/error.hpp"
#include "catchment/shm/fork_guard.hpp"
#include "catchment/shm/inside_way.hpp"
#include "catchment/shm/insider.hpp"

namespace catchment::shm {

/// What the switch gave: rings, and for a peer that was let in a way to run its program.
struct Attached {
  Channel channel;
  std::optional<InsideWay> inside;
};

class Connector {
 public:
  using Clock = std::chrono::steady_clock;

  /// Asks for the first time. With `enter` it asks to be let in. Throws ShmError for what waiting
  /// will not mend in this process.
  Connector(std::string path, Enter enter);

  /// Takes the next step towards an attachment, if one is due. None: not yet.
  std::optional<Attached> step();
  /// Asks again later, since the attachment is lost; call it while the lost one is still there.
  void lost(catchment_shm_status status, const std::string& why);
  /// Takes the wake-ups that other callers sent.
  void drain_bell() const { bell_->drain(); }
  /// Waits until there may be something to do, until the time at most.
  void sleep(Clock::time_point until) const;

  /// Whether the switch has been asked and has not answered yet.
  [[nodiscard]] bool asking() const { return connecting_.valid(); }
  /// Whether waiting will not help.
  [[nodiscard]] bool hopeless() const { return hopeless_; }
  /// Why there is no attachment.
  [[nodiscard]] catchment_shm_status status() const { return status_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  /// Becomes readable when there may be something to do.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }

 private:
  void ask();
  /// Throws what ask() takes for a switch that is not there.
  void connect();
  std::optional<Attached> take_answer();
  /// Goes in, by the switch's invitation. Throws ShmError: asks for rings from now on.
  Attached go_in(const Welcome& welcome, FileDescriptor memory);
  void set_timer(Clock::duration after) const;

  std::string path_;
  FileDescriptor epoll_;
  PrivateDescriptor own_epoll_;
  FileDescriptor timer_;
  PrivateDescriptor own_timer_;
  Enter enter_;  // empty: asks for rings
  std::optional<Bell> bell_;
  std::optional<PrivateDescriptor> own_bell_;
  FileDescriptor connecting_;
  std::optional<PrivateDescriptor> own_connection_;  // of connecting_, then of what was attached
  Clock::duration pause_{};                          // before the next try
  bool hopeless_ = false;
  catchment_shm_status status_ = CATCHMENT_SHM_DETACHED;
  std::string why_;
};

}  // namespace catchment::shm
