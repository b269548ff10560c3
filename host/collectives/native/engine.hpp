// A rank of an all-reduce stream: operations become vectors, sums become results.  One thread at a
// time may use the engine; the thread that holds it gives it its turns.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consumer_window.hpp"
#include "exponent_guess.hpp"
#include "frame_check.hpp"
#include "heartbeat.hpp"
#include "loss_detector.hpp"
#include "operation.hpp"
#include "payload.hpp"
#include "payloads.hpp"
#include "port.hpp"
#include "retransmit_timer.hpp"
#include "roll_call.hpp"
#include "schedule.hpp"
#include "sender_window.hpp"
#include "silence_timer.hpp"
#include "stats.hpp"
#include "stream_config.hpp"
#include "term_keys.hpp"
#include "vector_needs.hpp"

namespace catchment::host {

struct EngineConfig {
  StreamConfig stream;
  std::shared_ptr<TermKeys> keys = nullptr;  // of its frames' tags, which a port below it gives
  std::uint32_t rank = 0;
  std::uint32_t place = 0;  // worker index that frames say: on a shared host, the host's own
  std::string peer;         // the switch, for messages
  Nanos timeout = 0;
  Nanos absent = 0;  // the switch may be gone, or silent, for so long while operations wait; 0:
                     // their timeout
  Nanos call_after = 30 * kMillisecond;  // of waiting, the roll is called
  // Another rank waits for what this one has not called: called with the engine's turn.
  std::function<void()> hailed;
};

// What becomes of frames while another process has what they need.
enum class IfTaken : std::uint8_t { kWait, kLater };

class Engine {
 public:
  // Throws std::system_error, EMSGSIZE when a frame does not fit the path.
  Engine(EngineConfig config, std::unique_ptr<Port> port);

  // Queues an operation; one that cannot be is done, and failed, on return.
  void start(const std::shared_ptr<Operation>& operation, Nanos now);
  // Gives up an operation of which nothing was sent; false when it is too late.
  bool cancel(Operation& operation);
  // Receives and sends what there is; true when anything came or went.  What another process keeps
  // the port from sending is waited for, or kLater: queued, if something came.  A turn in which
  // nothing comes sends it, or flush().
  bool turn(Nanos now, IfTaken taken = IfTaken::kWait);
  // Whether a turn has left something queued.
  bool unsent() const { return unsent_; }
  void flush(IfTaken taken = IfTaken::kWait);
  // Tells the other ranks that this one goes, and sends nothing from here on.  One that has failed
  // says nothing: the others would blame it for what has failed it.
  void leave(Nanos now);
  // The others have been told.
  bool has_left() const { return roll_call_.said_farewell(); }
  // Fails what is pending and everything that comes.
  void fail(CollectiveFailure failure, Nanos now);
  // Gives the port back; only for an engine that has failed.  No frame comes or goes after it.
  void release_port() { port_.reset(); }
  // Goes on at another switch, which knows the stream as generation `gen`; returns the port of
  // before.  Every vector whose sum some rank lacks is sent again as it was sent: whichever switch
  // adds it up, the sum is the same.
  std::unique_ptr<Port> reroute(std::unique_ptr<Port> port, std::uint16_t gen, Nanos now);

  // The term that all ranks have come to, where the key behind it is due (TermKeys::due); else 0.
  std::uint64_t key_due() const;
  // The key of a term, for this and all that comes: false where it is not the next one.
  bool take_key(std::uint64_t term, const TagKey& key);
  // Whether there are operations that are not done.
  bool busy() const { return !pending_.empty(); }
  // Whether everything that this rank has sent has arrived at all ranks.
  bool settled() const { return !window_.outstanding(); }
  Nanos deadline() const;
  // As RollCall::missing.
  std::optional<std::uint64_t> missing_ranks(Nanos since, Nanos now) const {
    return roll_call_.missing(since, now);
  }
  // Since when no rank, this one among them, has been without a word over the switch; 0 while one
  // never had any.
  Nanos all_heard_at() const { return roll_call_.all_heard_at(); }
  // The switch is known to be gone.
  bool absent() const { return port_ != nullptr && port_->absent(); }
  // For how long the switch has been gone, or has answered nothing, while operations wait.
  Nanos away_for(Nanos now) const;
  // How long operations have waited without any sum; 0 while there are none.
  Nanos stalled_for(Nanos now) const { return pending_.empty() ? 0 : now - progressed_at_; }
  // When a sum last came from the switch that the engine is at; 0 before the first.
  Nanos last_sum_at() const { return last_sum_at_; }
  // False: there is something to do already (Port::may_sleep).
  bool may_sleep(bool full, const std::atomic<int>& stop) {
    return port_ == nullptr || port_->may_sleep(full, stop);
  }
  bool blocked() const { return blocked_; }
  // -1, which poll() takes for none, when the port was given back.
  int descriptor() const { return port_ == nullptr ? -1 : port_->descriptor(); }
  const std::optional<CollectiveFailure>& failure() const { return failure_; }
  const Stats& stats() const { return stats_; }
  const Layout& layout() const { return layout_; }

 private:
  // The one rule for each of a vector's senders: signatures, agendas and words are integers.
  static constexpr auto kWords = static_cast<std::uint8_t>(wire::DataType::kINT32);

  // What a heartbeat says besides this rank's window: nothing, how far it is, that it goes.
  enum class Saying : std::uint8_t { kWindow, kPlace, kLeaves };

  std::uint32_t place_of(Seq seq) const { return seq & mask_; }
  std::span<std::uint8_t> payload_of(Seq seq) { return payloads_[place_of(seq)]; }
  std::uint8_t* held_of(Seq seq) { return &held_payloads_[place_of(seq) * payload_bytes_]; }

  // Whether a frame may have overtaken others that came before it and wait.
  enum class Order : std::uint8_t { kInTurn, kEarly };

  bool receive(Nanos now);
  // What this rank has sent to itself, while it is in the nearest cache.
  void receive_own(Nanos now);
  void take(std::span<const std::uint8_t> frame, Order order, Nanos now);
  std::optional<Reject> on_frame(std::span<const std::uint8_t> frame, Order order, Nanos now);
  std::optional<Reject> on_sum(const wire::Header& header, const std::uint8_t* payload, Order order,
                               Nanos now);
  std::optional<Reject> on_merged(const wire::Header& header, std::size_t bytes, Nanos now);
  std::optional<Reject> on_ack(const wire::Header& header, Nanos now);

  // The sum of the oldest place that is not consumed.
  void consume(const wire::Header& header, const std::uint8_t* payload, Nanos now);
  // A sum that came early and may be used before those that it has overtaken; false: it must wait.
  bool use_early(const wire::Header& header, const std::uint8_t* payload, Nanos now);
  void on_signatures(Operation& operation, const wire::Header& header, const std::uint8_t* payload,
                     Nanos now);
  void on_data(const Place& place, const wire::Header& header, const std::uint8_t* payload,
               Nanos now);
  void on_placed(Operation& operation, const wire::Header& header, Nanos now);
  void on_agendas(const Place& place, const std::uint8_t* payload, Nanos now);
  void on_table(const Place& place, const std::uint8_t* payload, Nanos now);
  void read_needs(Operation& operation, std::uint32_t part, const std::uint8_t* payload);
  // `guessed`: by all ranks.
  void agree(Operation& operation, std::vector<Scale> scales, bool guessed);
  bool has_own_lanes(const Operation& operation, const wire::Header& header, Nanos now);
  void disagree(const wire::Header& header, const std::string& how, Nanos now);
  // Puts vector `index` into the result.
  void put(Operation& operation, std::uint32_t index, Scale scale, const Layout& layout,
           const wire::Header& header, const std::uint8_t* payload);
  // Has room for what all ranks give, where it is kept until the operation is done; the operation
  // is cancelled where there is none.
  void keep_room(Operation& operation) const;
  void complete(Operation& operation, Nanos now);
  void forget(const Operation& operation);

  bool transmit(Nanos now);
  void prepare(Seq seq, Place& place);
  void prepare_needs(Operation& operation, Signature& signature, wire::Header& header,
                     std::uint8_t* payload);
  void write_needs(const Operation& operation, std::uint32_t part, std::uint8_t* payload) const;
  void tell_need(const Operation& operation, std::uint32_t index, wire::Header& header) const;
  void prepare_data(Place& place, wire::Header& header, std::uint8_t* payload);
  void prepare_riding(Operation& operation, wire::Header& header, std::uint8_t* payload);
  void note_cut(Operation& operation, const Cut& cut, bool trial, wire::Header& header);
  void count_cut(Operation& operation, std::uint64_t saturated, std::uint64_t nonfinite);
  // Whether this rank has sums for itself now.
  bool send(Seq seq, bool again);
  bool send_heartbeat(Saying saying, Nanos now);
  // Sends again what may have been lost.
  void repeat(Nanos now);
  void probe(Nanos now);
  // The time at which the vectors that are not acknowledged are sent again.
  Nanos resend_at() const;
  // The same over a port that loses nothing but what is under way when a connection breaks.
  Nanos repeat_all_at() const;
  Scale scale_of_vector(const Operation& operation, std::uint32_t index) const;

  void supervise(Nanos now);
  // Ranks that have closed their communicators are waited for.
  std::optional<CollectiveFailure> deserted(Nanos now) const;
  // The job acknowledges what this rank has never received, and nothing else.
  bool served_before(Nanos now) const;
  CollectiveFailure missing(Nanos since, Nanos timeout) const;
  // Whether keys follow one another, as somebody asks for them.
  bool keys_follow() const { return config_.keys != nullptr && config_.keys->follow(); }
  // The key serves for no vector more: here as on all ranks, once they have all sums before it.
  bool is_spent() const;
  CollectiveFailure spent() const;
  std::string question() const;
  // How the switch has been away for longer than it may, if it has.
  std::optional<CollectiveFailure> abandoned(Nanos now);

  EngineConfig config_;
  Layout layout_;
  std::size_t payload_bytes_;
  std::size_t frame_bytes_;
  std::unique_ptr<Port> port_;  // until it is given back
  std::uint32_t mask_;
  SenderWindow window_;
  ConsumerWindow consumer_;
  Heartbeat heartbeat_;
  RetransmitTimer timer_;
  LossDetector losses_;
  SilenceTimer silence_;
  Schedule schedule_;
  ExponentGuess guess_;
  RollCall roll_call_;
  Stats stats_;
  std::uint64_t consumed_ = 0;  // places
  std::vector<Place> places_;   // what was sent, by place
  std::deque<Seq> begins_;      // places of signatures that were sent and are not consumed
  std::vector<wire::Header> headers_;
  Payloads payloads_;                       // as they were sent: results may overwrite the arrays
  std::vector<wire::Header> held_headers_;  // sums that came early, by place
  std::vector<std::uint8_t> held_payloads_;
  std::vector<std::shared_ptr<Operation>> pending_;
  Nanos progressed_at_ = 0;
  Nanos last_sum_at_ = 0;
  Nanos repeated_at_ = 0;          // all that is not acknowledged, over a lossless port
  std::uint64_t connections_ = 0;  // of the port, when all was sent
  Nanos supervised_at_ = 0;
  Nanos absent_since_ = kNever;
  std::uint64_t heard_ = 0;
  std::uint64_t impossible_ = 0;  // acks that cannot be of this run, since the last one that can
  bool blocked_ = false;          // the port takes no more
  bool unsent_ = false;           // frames of the last turn are queued
  bool leaving_ = false;
  std::optional<CollectiveFailure> failure_;
};

// The longest frame of such a stream.
std::size_t longest_frame(std::uint32_t lanes);

}  // namespace catchment::host
