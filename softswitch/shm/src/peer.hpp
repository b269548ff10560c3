// The peer's side of a port: attaches, and attaches again whenever the switch has been away.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "catchment/common/adaptive_patience.hpp"
#include "catchment/shm/channel.hpp"
#include "catchment/shm/connector.hpp"
#include "catchment/shm/fork_guard.hpp"
#include "catchment/shm/inside_way.hpp"
#include "catchment/shm/insider.hpp"
#include "catchment_shm.h"

namespace catchment::shm {

class Peer {
 public:
  /// Throws ShmError when it is not attached within `timeout_ms` (negative: forever). With `enter`
  /// it asks to be let in.
  Peer(const std::string& path, int timeout_ms, Enter enter = {});
  /// May have to wait for the switch, which it attaches to when that is there; throws ShmError when
  /// waiting will not help.
  explicit Peer(const std::string& path, Enter enter = {});

  int send(const catchment_shm_frame* frames, int count);
  int receive(catchment_shm_frame* frames, int count);
  int peek(catchment_shm_frame* frames, int count);
  void* reserve();
  int commit(std::uint32_t length, std::span<const std::uint8_t> rest);
  int commit_in_place(std::span<const std::uint8_t> frame);
  /// Does what shm::own_frame() says; take_own() what shm::take_own() does.
  std::span<const std::uint8_t> own_frame();
  void take_own();
  [[nodiscard]] bool has_own_frames() const { return channel_ && channel_->own().waiting() != 0; }
  /// The status of a call that cannot be meant: says why.
  int refuse(const std::string& why);
  /// The status of a call in the middle of which something was thrown that says `what`.
  int fail(const char* what) noexcept;
  int flush();
  int flush_if_free();
  int wait(int events, std::int64_t timeout_us);
  int arm(int events);
  int look(int events, const int* stop);
  int check();

  /// Whether this process may use the port; says why not.
  bool ours() { return !fork_guard_.in_child() || refuse_child(); }
  [[nodiscard]] int descriptor() const { return connector_.descriptor(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] catchment_shm_info info() const;
  /// Whether the switch has let it in.
  [[nodiscard]] bool inside() const { return inside_.has_value(); }
  bool move_apart() { return inside_ && inside_->move_apart(); }

 private:
  using Clock = Connector::Clock;
  /// The buffer that a reserved frame is written to: a cell itself is written once, in one go.
  struct alignas(kLine) Staging {
    std::array<std::uint8_t, kMaxCellBytes> bytes{};
  };

  /// Takes the next step towards being attached, if it is due. Whether we are.
  bool attached() { return channel_ || attach(); }
  bool attach();
  bool refuse_child();
  bool has_room() { return inside_ ? inside_->has_room(*channel_) : channel_->out().has_room(); }
  /// What may be said against committing a frame of `bytes`, of which `begun` were written first.
  int check_commit(std::size_t begun, std::size_t bytes);
  int committed();
  void put(const Pieces& frame);
  void publish();
  /// Lets go of the switch, and tries again later.
  void let_go(catchment_shm_status status, const std::string& why);
  /// Looks at the socket: are both still here?
  bool check_link();
  /// Checks the link after the other side's wake-up, or once in a while; false: the switch is gone.
  bool settle();
  /// Passes up to `count` of the frames that wait to `hand_over`, which says whether it took one.
  template <class Handover>
  int incoming(catchment_shm_frame* frames, int count, Handover hand_over);
  /// Gives the cells of all frames that were passed back to the switch.
  void give_back();
  /// Lets go when the ring is faulty; the status to return.
  int faulty();
  [[nodiscard]] bool known(int events);

  ForkGuard fork_guard_;
  std::string path_;
  std::unique_ptr<Staging> staging_;
  std::optional<Channel> channel_;  // outlives what keeps its descriptor to this process
  Connector connector_;
  std::optional<InsideWay> inside_;  // of the channel, if the peer was let in
  /// What the channel before had, while the caller looks at its frames.
  std::optional<Channel::Memory> retired_;
  AdaptivePatience patience_{kPeerPatience};
  std::uint32_t armed_ = 0;  // the events that the switch wakes us for
  unsigned idle_looks_ = 0;
  Nanos checked_ = 0;  // the link, of a peer that was let in
  bool reserved_ = false;
  bool lent_ = false;         // the caller looks at frames in their cells
  bool taken_early_ = false;  // no other one than its last own frame
  std::string error_;
  catchment_shm_info info_{};
};

}  // namespace catchment::shm
