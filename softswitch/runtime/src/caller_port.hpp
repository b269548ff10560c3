// The end of a shared-memory port in a process that runs the switch's program itself.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caller.hpp"
#include "catchment/shm/bell.hpp"
#include "catchment/shm/insider.hpp"

namespace catchment::softswitch {

class CallerPort final : public shm::Insider, private Exit {
 public:
  CallerPort(std::unique_ptr<Caller> caller, std::uint32_t port);

  bool run(std::span<const Frame> frames, shm::Channel& channel) override {
    return run(frames, channel, IfHeld::wait);
  }
  bool run_if_free(std::span<const Frame> frames, shm::Channel& channel) override {
    return run(frames, channel, IfHeld::give_up);
  }
  bool shares_processor() override;
  bool move_apart() override;

 private:
  /// The ring to a port that others, too, put frames into.
  struct Way {
    Way(const SharedRing& ring, shm::Mapping rings);

    std::uint64_t epoch;
    shm::Mapping mapping;
    shm::Producer producer;
    std::string bell;
    bool touched = false;  // by this batch
    bool buffers = false;  // a frame of this batch had no room: those behind it do not overtake it
  };

  bool run(std::span<const Frame> frames, shm::Channel& channel, IfHeld held);
  bool open() override;
  rt::Room room(std::uint32_t port) override;
  void filled(std::uint32_t port, std::uint32_t length) override;
  Left leave(const rt::OutFrame& frame) override;
  void digest(const DigestMessage& message) override;
  void line(const std::string& text) override;
  void step_limit(std::uint32_t port, const char* where) override;
  void close() override;

  /// The way to a port, ready for the next frame; nullptr: it has no ring, or one that cannot be
  /// used.
  Way* way_to(std::uint32_t port);
  /// The same for the first frame of a batch.
  Way* begin_way_to(std::uint32_t port);
  /// Says that this process is on a processor.
  void show_processor(int number);
  /// How many of those whom frames go to were last seen on a processor.
  [[nodiscard]] std::ptrdiff_t seen_on(int number) const;
  bool pass_on(shm::Mark mark, std::span<const std::uint8_t> bytes);
  void wake(Way& way);
  void wake_all();

  std::unique_ptr<Caller> caller_;
  SharedState& state_;
  std::uint32_t port_;
  shm::Ringer ringer_;
  std::vector<rt::InputFrame> inputs_;
  shm::Channel* channel_ = nullptr;  // of the batch that is being run
  bool own_room_ = false;   // the room that its own port was last given is none of the ring
  bool passed_on_ = false;  // something, since the batch began
  std::array<std::unique_ptr<Way>, rt::kPorts> ways_;
  std::vector<std::uint32_t> touched_;  // ports that frames of this batch go to
  std::vector<std::uint32_t> others_;   // ports that frames of this one have gone to
};

}  // namespace catchment::softswitch
