// A peer that the switch lets into its data plane: it runs the program on its frames itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/shm/channel.hpp"
#include "catchment_shm.h"

namespace catchment::shm {

class Insider {
 public:
  Insider() = default;
  virtual ~Insider() = default;
  Insider(const Insider&) = delete;
  Insider& operator=(const Insider&) = delete;

  using Frame = std::span<const std::uint8_t>;
  /// Runs frames of the port, puts what leaves where it belongs, wakes who waits for it. What only
  /// the switch can do goes to it through `channel`, marked. False: nothing has happened, and the
  /// frames are the switch's to run. What is thrown, as when memory ends, comes after some of the
  /// frames: what they made is where it belongs, and the others are lost.
  virtual bool run(std::span<const Frame> frames, Channel& channel) = 0;
  /// Runs frames as run() does, unless another peer is running some: then false, and nothing has
  /// happened.
  virtual bool run_if_free(std::span<const Frame> frames, Channel& channel) = 0;
  /// Takes this thread to the processor where fewest of those that frames go to were last seen, if
  /// they are fewer than on this one. Whether it did.
  virtual bool move_apart() = 0;
};

/// What the switch hands to a peer that it lets in.
struct Invitation {
  FileDescriptor memory;
  std::int32_t switch_pid = 0;
  std::uint32_t port = 0;
};

struct Entered {
  Mapping rings;  // stay mapped as long as they are used
  std::unique_ptr<Insider> insider;
};

/// Makes use of an invitation. Throws ShmError: this process cannot, and has to ask for rings.
using Enter = std::function<Entered(Invitation)>;

using OwnPort = std::unique_ptr<catchment_shm, void (*)(catchment_shm*)>;

/// Attach as catchment_shm_attach() and catchment_shm_attach_later() do, and ask to be let in.
/// Throws ShmError.
OwnPort attach(const std::string& path, int timeout_ms, Enter enter);
OwnPort attach_later(const std::string& path, Enter enter);

/// Commits a frame, as catchment_shm_commit() does, that lies elsewhere and stays as it is until
/// the next flush: a peer that was let in copies nothing. 1 in place of CATCHMENT_SHM_OK: there is
/// an own_frame().
int commit_in_place(catchment_shm* port, std::span<const std::uint8_t> frame);

/// Flushes as catchment_shm_flush() does, unless another peer is running frames: then 0, and what
/// is queued stays so. 1 in place of CATCHMENT_SHM_OK.
int flush_if_free(catchment_shm* port);

/// The first of the frames that the peer has sent to itself and has not taken; nothing: there is
/// none. catchment_shm_peek() passes it in its turn, or take_own() before those that others have
/// sent earlier: then it stays where it is until the port is asked for the next one.
std::span<const std::uint8_t> own_frame(catchment_shm* port);
void take_own(catchment_shm* port);

/// Whether the switch has let the peer in.
bool inside(const catchment_shm* port);
/// Takes this thread to a processor that fewer peers of the switch's may need, as far as one that
/// was let in knows. Whether it did.
bool move_apart(catchment_shm* port);

}  // namespace catchment::shm
