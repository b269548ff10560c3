// The v1model pipeline around a compiled program: what happens between its blocks, as simple_switch
// does it.
//
//   frame -> parser -> verify checksum -> ingress -> clone | digest | resubmit | multicast | drop |
//   unicast
//         -> egress -> clone | drop -> compute checksum -> deparser -> recirculate | out
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "catchment/softswitch/rt/packet.hpp"
#include "catchment/softswitch/rt/program.hpp"

namespace catchment::softswitch::rt {

enum class InstanceType : std::uint32_t {
  normal = 0,
  ingress_clone = 1,
  egress_clone = 2,
  recirculated = 4,
  replication = 5,
  resubmitted = 6,
};

/// What a program asks of the pipeline while one block of it runs.
struct Requests {
  std::uint32_t clone_session = 0;  // with kRequested
  std::uint32_t clone_list = 0;
  std::uint32_t resubmit_list = 0;     // with kRequested
  std::uint32_t recirculate_list = 0;  // with kRequested
  std::uint32_t truncate_to = ~0U;
  std::uint32_t digest = 0;  // which digest() of the program ran last

  static constexpr std::uint32_t kRequested = 1U << 31;
};

/// One packet on its way; passed to every block.
struct PacketContext {
  Engine& engine;
  Requests requests;
  const std::uint8_t* payload = nullptr;  // what the parser left
  std::uint32_t payload_length = 0;
  std::uint32_t length = 0;  // of the packet as it came in
  std::uint32_t ingress_port = 0;
  bool checksum_error = false;
};

/// Bytes of the headers, from `offset` on.
struct Part {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// Passes the bytes of a value of `size` bytes that are in none of the parts, which are in order,
/// to `use(offset, bytes)`, piece by piece.
template <std::size_t N, class Use>
inline void around(const std::array<Part, N>& parts, std::size_t size, Use use) {
  std::size_t at = 0;
  for (const Part& part : parts) {
    use(at, part.offset - at);
    at = part.offset + part.bytes;
  }
  use(at, size - at);
}

/// P is the compiled program. It has the types Headers, Metadata, StandardMetadata and, each taking
/// (PacketContext&, ...): parse, verify, ingress, egress, compute, deparse; and preserve(list,
/// from, to) for field lists; kCountsSteps: whether one of them may throw StepLimit. kLate are
/// parts of the headers that parse writes whole or not at all, and settle(headers) clears those
/// that it did not write; restore() copies what egress or compute may write. kOnlyEmits:
/// deparse does nothing but write, and may be called again.
template <class P>
class V1Model {
 public:
  using Headers = typename P::Headers;
  using Metadata = typename P::Metadata;
  using StandardMetadata = typename P::StandardMetadata;

  struct State {
    Headers headers{};
    Metadata metadata{};
    StandardMetadata standard{};
  };

  explicit V1Model(P& program) : program_(program) {}

  void run(std::span<const InputFrame> frames, Engine& engine) {
    for (const InputFrame& frame : frames) {
      PortCounters& counters = engine.ports[frame.port % kPorts];
      counters.rx_packets += 1;
      counters.rx_bytes += frame.length;
      if constexpr (P::kCountsSteps) {
        engine.steps_left = engine.max_steps;
        try {
          run_frame(engine, frame, counters);
        } catch (const StepLimit& limit) {
          counters.drops[kStepLimit] += 1;
          copies_.clear();
          clone_depth_ = 0;
          engine.hooks->step_limit(frame.port, limit.where);
        }
      } else {
        run_frame(engine, frame, counters);
      }
    }
  }

 private:
  static constexpr std::size_t kProgram = 1;  // DropCause
  static constexpr std::size_t kNoSuchPort = 2;
  static constexpr std::size_t kTxFull = 3;
  static constexpr std::size_t kTooLong = 4;
  static constexpr std::size_t kLoopLimit = 6;
  static constexpr std::size_t kNoGroup = 7;
  static constexpr std::size_t kStepLimit = 8;
  static constexpr std::uint32_t kMaxEgressClones = 1024;  // of one frame

  void run_frame(Engine& engine, const InputFrame& frame, PortCounters& counters) {
    again_.clear();
    egress_clones_ = 0;
    enter(engine, frame, frame.port, InstanceType::normal, nullptr, 0);
    for (std::size_t i = 0; i < again_.size(); ++i) {
      if (i >= engine.max_passes) {
        counters.drops[kLoopLimit] += again_.size() - i;
        break;
      }
      const Again next = std::move(again_[i]);
      enter(engine, {next.bytes.data(), static_cast<std::uint32_t>(next.bytes.size()), frame.port},
            next.visible_port, next.type, next.metadata.get(), next.list);
    }
  }

  /// A packet that starts over: resubmitted or recirculated.
  struct Again {
    std::vector<std::uint8_t> bytes;
    std::unique_ptr<Metadata> metadata;
    std::uint32_t list = 0;
    std::uint32_t visible_port = 0;
    InstanceType type = InstanceType::normal;
  };

  void start(PacketContext& packet, State& state, std::uint32_t visible_port, InstanceType type) {
    auto* const headers = reinterpret_cast<std::uint8_t*>(&state.headers);
    around(P::kLate, sizeof state.headers, [headers](std::size_t offset, std::size_t bytes) {
      std::memset(headers + offset, 0, bytes);
    });
    std::memset(static_cast<void*>(&state.metadata), 0, sizeof state.metadata);
    std::memset(static_cast<void*>(&state.standard), 0, sizeof state.standard);
    state.standard.f_ingress_port = static_cast<std::uint16_t>(visible_port);
    state.standard.f_packet_length = packet.length;
    state.standard.f_instance_type = static_cast<std::uint32_t>(type);
    state.standard.f_ingress_global_timestamp = packet.engine.now_us;
  }

  void parse(PacketContext& packet, const InputFrame& frame, State& state) {
    PacketReader in{frame.data, frame.data, frame.data + frame.length};
    state.standard.f_parser_error =
        program_.parse(packet, in, state.headers, state.metadata, state.standard);
    P::settle(state.headers);
    packet.payload = in.at;
    packet.payload_length = static_cast<std::uint32_t>(in.left());
  }

  void enter(Engine& engine, const InputFrame& frame, std::uint32_t visible_port, InstanceType type,
             const Metadata* kept, std::uint32_t list) {
    PacketContext packet{
        .engine = engine, .requests = {}, .length = frame.length, .ingress_port = frame.port};
    State& state = state_;
    start(packet, state, visible_port, type);
    if (kept != nullptr) {
      program_.preserve(list, *kept, state.metadata);
    }
    parse(packet, frame, state);
    program_.verify(packet, state.headers, state.metadata);
    state.standard.f_checksum_error = packet.checksum_error ? 1 : 0;
    program_.ingress(packet, state.headers, state.metadata, state.standard);

    const Requests asked = packet.requests;
    packet.requests = {};
    packet.requests.truncate_to = asked.truncate_to;
    if (asked.clone_session != 0) [[unlikely]] {
      clone_ingress(packet, frame, state, asked);
    }
    if (asked.resubmit_list != 0) [[unlikely]] {
      Again again;
      again.bytes.assign(frame.data, frame.data + frame.length);
      again.metadata = std::make_unique<Metadata>(state.metadata);
      again.list = asked.resubmit_list & ~Requests::kRequested;
      again.type = InstanceType::resubmitted;
      again_.push_back(std::move(again));
      return;
    }
    state.standard.f_enq_timestamp = static_cast<std::uint32_t>(engine.now_us);
    if (state.standard.f_mcast_grp != 0) {
      state.standard.f_instance_type = static_cast<std::uint32_t>(InstanceType::replication);
      const ReplicaList& group = engine.groups[state.standard.f_mcast_grp];
      if (group.count == 0) {
        engine.ports[packet.ingress_port % kPorts].drops[kNoGroup] += 1;
      }
      packet.requests.truncate_to = Requests{}.truncate_to;  // BMv2 copies whole frames
      replicate(packet, group, state);
      return;
    }
    if (state.standard.f_egress_spec == engine.drop_port) {
      engine.ports[packet.ingress_port % kPorts].drops[kProgram] += 1;
      return;
    }
    state.standard.f_instance_type = static_cast<std::uint32_t>(InstanceType::normal);
    leave(packet, state, state.standard.f_egress_spec);
  }

  /// Every copy but the last leaves the state as it was, but for what is set for each.
  void replicate(PacketContext& packet, const ReplicaList& list, State& state) {
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const Replica& replica = list.replicas[i];
      PacketContext copy = packet;
      State* const before = i + 1 == list.count ? nullptr : &copies_.emplace();
      if (before != nullptr) {
        restore(*before, state);
      }
      state.standard.f_egress_rid = static_cast<std::uint16_t>(replica.instance);
      leave(copy, state, replica.port);
      if (before != nullptr) {
        restore(state, *before);
        copies_.pop();
      }
    }
  }

  /// Makes a state another one, as far as replicas may change it.
  static void restore(State& to, const State& from) {
    P::restore(to.headers, from.headers, to.metadata, from.metadata, to.standard, from.standard);
  }

  void clone_ingress(PacketContext& packet, const InputFrame& frame, const State& state,
                     const Requests& asked) {
    const CloneTarget& target = packet.engine.sessions[asked.clone_session % kSessions];
    if (!target.present) {
      return;
    }
    PacketContext copy{.engine = packet.engine,
                       .requests = {},
                       .length = frame.length,
                       .ingress_port = frame.port};
    State& cloned = copies_.emplace();
    start(copy, cloned, frame.port, InstanceType::normal);
    parse(copy, frame, cloned);
    finish_clone(copy, cloned, state.metadata, asked, target, InstanceType::ingress_clone);
    copies_.pop();
  }

  /// The original leaves first: BMv2 puts the clone into a queue.
  void leave_with_clone(PacketContext& packet, State& state, std::uint32_t port,
                        const Requests& asked) {
    const CloneTarget& target = packet.engine.sessions[asked.clone_session % kSessions];
    if (!target.present) {
      send(packet, state, port, asked);
      return;
    }
    PacketContext copy = packet;
    copy.requests = {};
    State& cloned = copies_.emplace();
    cloned.headers = state.headers;
    cloned.metadata = state.metadata;
    send(packet, state, port, asked);
    // Clones that are cloned again in pairs would double with every level: their number is bounded,
    // too.
    egress_clones_ += 1;
    if (++clone_depth_ > packet.engine.max_passes || egress_clones_ > kMaxEgressClones) {
      packet.engine.ports[packet.ingress_port % kPorts].drops[kLoopLimit] += 1;
    } else {
      const Metadata original = cloned.metadata;
      finish_clone(copy, cloned, original, asked, target, InstanceType::egress_clone);
    }
    --clone_depth_;
    copies_.pop();
  }

  void finish_clone(PacketContext& copy, State& cloned, const Metadata& original,
                    const Requests& asked, const CloneTarget& target, InstanceType type) {
    std::memset(static_cast<void*>(&cloned.metadata), 0, sizeof cloned.metadata);
    std::memset(static_cast<void*>(&cloned.standard), 0, sizeof cloned.standard);
    program_.preserve(asked.clone_list, original, cloned.metadata);
    cloned.standard.f_instance_type = static_cast<std::uint32_t>(type);
    if (target.truncate_to != 0) {
      copy.requests.truncate_to = target.truncate_to;
    }
    replicate(copy, target.to, cloned);
  }

  void leave(PacketContext& packet, State& state, std::uint32_t port) {
    const Engine& engine = packet.engine;
    state.standard.f_egress_port = static_cast<std::uint16_t>(port);
    state.standard.f_egress_spec = 0;
    state.standard.f_packet_length = packet.length;
    state.standard.f_egress_global_timestamp = engine.now_us;
    program_.egress(packet, state.headers, state.metadata, state.standard);

    const Requests asked = packet.requests;
    packet.requests = {};
    packet.requests.truncate_to = asked.truncate_to;
    if (asked.clone_session != 0) [[unlikely]] {
      leave_with_clone(packet, state, port, asked);
    } else {
      send(packet, state, port, asked);
    }
  }

  /// What follows egress.
  void send(PacketContext& packet, State& state, std::uint32_t port, const Requests& asked) {
    Engine& engine = packet.engine;
    PortCounters& counters = engine.ports[packet.ingress_port % kPorts];
    if (state.standard.f_egress_spec == engine.drop_port) {
      counters.drops[kProgram] += 1;
      return;
    }
    program_.compute(packet, state.headers, state.metadata);

    Reserved reserved(*engine.out);
    // What starts over needs a buffer, and what does not fit a room gets one.
    std::size_t length = 0;
    if (P::kOnlyEmits && asked.recirculate_list == 0 && reserved.take_room(port)) {
      length = write(packet, state, asked, reserved);
    }
    if (length == 0 || length > engine.max_frame_bytes) {
      if (!reserved.take_buffer()) [[unlikely]] {
        engine.ports[port % kPorts].drops[kTxFull] += 1;
        return;
      }
      length = write(packet, state, asked, reserved);
      if (length > engine.max_frame_bytes) [[unlikely]] {
        counters.drops[kTooLong] += 1;
        return;
      }
    }
    std::uint8_t* const buffer = reserved.room.data;

    if (asked.recirculate_list != 0) [[unlikely]] {
      Again again;
      again.bytes.assign(buffer, buffer + length);
      again.metadata = std::make_unique<Metadata>(state.metadata);
      again.list = asked.recirculate_list & ~Requests::kRequested;
      again.type = InstanceType::recirculated;
      again_.push_back(std::move(again));
      return;
    }
    reserved.commit(static_cast<std::uint32_t>(length), port);
  }

  /// A room or a buffer for a frame that leaves; a buffer goes back to the pool unless it is
  /// committed.
  class Reserved {
   public:
    explicit Reserved(Output& output) : output_(output) {}
    ~Reserved() {
      if (buffered_) {
        output_.release(room.data);
      }
    }
    Reserved(const Reserved&) = delete;
    Reserved& operator=(const Reserved&) = delete;

    /// Whether there is one.
    bool take_room(std::uint32_t port) {
      if (output_.rooms() == nullptr) {
        return false;
      }
      room = output_.rooms()->room(port);
      return room.data != nullptr;
    }
    /// Whether one was left.
    bool take_buffer() {
      room = {.data = output_.reserve(), .bytes = output_.capacity()};
      buffered_ = room.data != nullptr;
      return buffered_;
    }
    void commit(std::uint32_t length, std::uint32_t port) {
      if (!std::exchange(buffered_, false)) {
        output_.rooms()->filled(port, length);
        return;
      }
      output_.commit(room.data, length, port);
    }

    Room room;

   private:
    Output& output_;
    bool buffered_ = false;
  };

  /// Writes the frame. Its length; more than any frame may have where it does not fit.
  std::size_t write(PacketContext& packet, const State& state, const Requests& asked,
                    const Reserved& reserved) {
    const Room& room = reserved.room;
    PacketWriter out{room.data, room.data + room.bytes, room.streams};
    program_.deparse(packet, out, state.headers);
    const auto header_length = static_cast<std::size_t>(out.at - room.data);
    const std::size_t whole = header_length + packet.payload_length;
    // BMv2 starts over with a copy of the whole frame.
    const std::size_t keep =
        asked.recirculate_list != 0 ? whole : std::min<std::size_t>(whole, asked.truncate_to);
    if (out.overflow || keep > room.bytes) [[unlikely]] {
      return ~std::size_t{0};
    }
    if (keep > header_length) {
      std::memcpy(out.at, packet.payload, keep - header_length);
    }
    return keep;
  }

  /// States of copies in flight, a stack: addresses stay, memory is kept.
  class Copies {
   public:
    State& emplace() {
      if (depth_ == states_.size()) {
        states_.push_back(std::make_unique<State>());
      }
      return *states_[depth_++];
    }
    void pop() { --depth_; }
    void clear() { depth_ = 0; }

   private:
    std::vector<std::unique_ptr<State>> states_;
    std::size_t depth_ = 0;
  };

  P& program_;
  State state_;
  Copies copies_;
  std::vector<Again> again_;
  std::uint32_t clone_depth_ = 0;
  std::uint32_t egress_clones_ = 0;
};

}  // namespace catchment::softswitch::rt
