// The way of a peer's frames once the switch has let it in: run here, or left to the switch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "catchment/shm/channel.hpp"
#include "catchment/shm/insider.hpp"

namespace catchment::shm {

class InsideWay {
 public:
  explicit InsideWay(std::unique_ptr<Insider> insider);

  /// Whether one more frame can be put, even if all of them have to be left to the switch.
  bool has_room(Channel& channel) const {
    return channel.out().has_room_for(std::min<std::uint32_t>(
        static_cast<std::uint32_t>(frames_.size()) + 1, channel.mapping().geometry().cells));
  }
  /// Queues a copy of a frame of 1 to cell_bytes bytes. Only after has_room().
  void put(const Pieces& frame, Channel& channel);
  /// The same for a frame that stays as it is until it has been published, without a copy. (Passed
  /// in memory, a span would be read wider than it was just stored, and so wait for all stores
  /// before it: what the frame is made of.)
  void put_in_place(Insider::Frame frame, Channel& channel);
  bool move_apart() { return insider_->move_apart(); }
  [[nodiscard]] bool empty() const { return frames_.empty(); }
  /// Runs what is queued. Whatever throws on the way, here and above, nothing is queued any more.
  void publish(Channel& channel);
  /// The same, unless another peer is running some: then false, and all stays queued.
  bool publish_if_free(Channel& channel);

 private:
  using Run = bool (Insider::*)(std::span<const Insider::Frame>, Channel&);

  void add(Insider::Frame frame);
  /// Runs what is queued, if it is so much that it should be.
  void look(Channel& channel);
  bool run(Run how, Channel& channel);
  /// Whether frames have to go to the switch, behind others that it has not taken yet.
  bool follows(Channel& channel);
  void clear();

  std::unique_ptr<Insider> insider_;
  std::unique_ptr<std::uint8_t[]> room_;
  std::uint8_t* bytes_;     // whole lines of it
  std::size_t used_ = 0;    // of them
  std::size_t queued_ = 0;  // bytes of frames_, as whole lines: used_ and what lies elsewhere
  std::size_t try_at_;      // so many of them are worth a look whether they can be run
  std::vector<Insider::Frame> frames_;
  bool left_ = false;        // some frames were left to the switch
  std::uint64_t until_ = 0;  // that it has to take before any is run here: frames keep their order
};

}  // namespace catchment::shm
