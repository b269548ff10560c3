// The endpoint's state machines for Python, so that tests can hold them against slow models.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "consumer_window.hpp"
#include "endpoint.hpp"
#include "engine_turns.hpp"
#include "envelope.hpp"
#include "frame_check.hpp"
#include "frame_tag.hpp"
#include "heartbeat.hpp"
#include "rail_costs.hpp"
#include "rails/lateness.hpp"
#include "rails/own_lateness.hpp"
#include "rails/rail_health.hpp"
#include "retransmit_timer.hpp"
#include "ring/ring_links.hpp"
#include "roll_call.hpp"
#include "sender_window.hpp"
#include "shm_attachment.hpp"
#include "silence_timer.hpp"
#include "slot_ring.hpp"
#include "udp_port.hpp"

namespace py = pybind11;
using namespace catchment;
using namespace catchment::host;

namespace {

std::optional<std::pair<Seq, bool>> take(SenderWindow& window) {
  const auto transmission = window.take();
  if (!transmission) return std::nullopt;
  return std::pair{transmission->seq, transmission->again};
}

std::string on_ack(SenderWindow& window, Seq ack, Seq credit) {
  switch (window.on_ack(ack, credit)) {
    case AckOutcome::kAdvanced:
      return "advanced";
    case AckOutcome::kCreditOnly:
      return "credit";
    case AckOutcome::kNothing:
      return "nothing";
    case AckOutcome::kImpossible:
      return "impossible";
  }
  return "";
}

std::string classify(const ConsumerWindow& window, Seq seq) {
  switch (window.classify(seq)) {
    case Arrival::kNext:
      return "next";
    case Arrival::kAhead:
      return "ahead";
    case Arrival::kDuplicate:
      return "duplicate";
    case Arrival::kOutside:
      return "outside";
  }
  return "";
}

std::string name_of(RoundEvent event) {
  switch (event) {
    case RoundEvent::kTaken:
      return "taken";
    case RoundEvent::kRepeated:
      return "repeated";
    case RoundEvent::kImpossible:
      return "impossible";
  }
  return "";
}

// (seq, vector, ack)
std::optional<std::tuple<Seq, bool, bool>> take_retry(SlotRing& ring, Nanos now) {
  const auto retry = ring.take_retry(now);
  if (!retry) return std::nullopt;
  return std::tuple{retry->seq, retry->vector, retry->ack};
}

// What is wrong with a frame, or "" when a stream with these rules takes it.
std::string check(const py::bytes& frame, std::uint16_t gen, bool sums, bool parameters,
                  bool merged, std::uint32_t lanes, std::uint32_t param_bytes, bool confirmations,
                  bool packed) {
  const auto text = static_cast<std::string_view>(frame);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  catchment::wire::Header header;
  auto reject = check_envelope(bytes, header);
  if (!reject && header.gen != gen) reject = Reject::kGeneration;
  if (!reject) {
    reject = check_content(header, bytes.size(),
                           {.gen = gen,
                            .sums = sums,
                            .packed = packed,
                            .parameters = parameters,
                            .merged = merged,
                            .lanes = lanes,
                            .param_bytes = param_bytes,
                            .confirmations = confirmations});
  }
  return reject ? std::string(name(*reject)) : "";
}

// A socket that is full three times out of four, and then takes one batch.
class ChokedPort final : public Port {
 public:
  explicit ChokedPort(std::uint16_t peer, std::size_t frame_bytes)
      : socket_({"127.0.0.1", 0}, {"127.0.0.1", peer}, frame_bytes, 64) {}

  std::uint8_t* stage() override { return staged_ == 5 && !flush() ? nullptr : socket_.stage(); }
  void commit(std::size_t bytes, std::span<const std::uint8_t> rest) override {
    socket_.commit(bytes, rest);
    ++staged_;
  }
  bool flush() override {
    if (staged_ != 0 && ++attempts_ % 4 != 0) return false;
    staged_ = 0;
    return socket_.flush();
  }
  std::span<const std::span<const std::uint8_t>> receive() override { return socket_.receive(); }
  bool more() const override { return socket_.more(); }
  std::size_t path_bytes() const override { return socket_.path_bytes(); }
  int descriptor() const override { return socket_.descriptor(); }
  std::uint64_t errors() const override { return socket_.errors(); }
  int last_error() const override { return socket_.last_error(); }
  std::uint64_t foreign() const override { return socket_.foreign(); }
  std::uint16_t local() const { return socket_.local().port; }

 private:
  UdpPort socket_;
  std::size_t staged_ = 0;
  std::size_t attempts_ = 0;
};

// The only peer of an all-reduce, behind a choked port.
class ChokedPeer {
 public:
  ChokedPeer(std::uint16_t gen, std::uint32_t slots, std::uint16_t peer) {
    const StreamConfig stream{.name = "stream",
                              .gen = gen,
                              .workers = 1,
                              .slots = slots,
                              .window = slots,
                              .base = 0,
                              .lanes = 64,
                              .param_bytes = 0};
    EndpointConfig config;
    config.role = Role::kPeer;
    config.out = config.in = stream;
    config.timeout = 30'000'000'000;
    auto port = std::make_unique<ChokedPort>(peer, longest_frame(config));
    local_ = port->local();
    endpoint_ = std::make_unique<Endpoint>(std::move(config), std::move(port));
  }

  std::uint16_t local() const { return local_; }
  std::uint64_t socket_stalls() const { return endpoint_->stats().socket_stalls.count.get(); }

  // Pushes int32 words and returns their sum, or "" when that failed.
  py::bytes exchange(const std::string& words) {
    std::string out = words;
    std::string in(words.size(), '\0');
    bool ok = false;
    {
      const py::gil_scoped_release release;
      const auto type = catchment::wire::DataType::kINT32;
      const auto memory = [&](std::string& text) {
        return Memory{reinterpret_cast<std::uint8_t*>(text.data()), text.size() / 4, type};
      };
      const auto push = endpoint_->push(memory(out), {});
      const auto pull = endpoint_->pull(memory(in), {});
      ok = push->wait_for(std::chrono::minutes(1)) && pull->wait_for(std::chrono::minutes(1));
      endpoint_->close(0);
      ok = ok && !push->outcome.failure && !pull->outcome.failure;
    }
    return ok ? py::bytes(in) : py::bytes();
  }

 private:
  std::uint16_t local_ = 0;
  std::unique_ptr<Endpoint> endpoint_;
};

// Sends frames, as many as leave at once together; those that are sent in place are not staged.
void send_frames(UdpPort& port, const std::vector<std::string>& frames,
                 const std::vector<bool>& in_place) {
  std::vector<std::vector<std::uint8_t>> lying;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::string& frame = frames[i];
    std::uint8_t* room = nullptr;
    while ((room = port.stage()) == nullptr) std::this_thread::yield();
    if (in_place.empty() || !in_place[i]) {
      std::memcpy(room, frame.data(), frame.size());
      port.commit(frame.size());
      continue;
    }
    auto& place = lying.emplace_back(Port::kFront);
    place.insert(place.end(), frame.begin(), frame.end());
    port.commit_in_place(std::span(place).subspan(Port::kFront));
  }
  while (!port.flush()) std::this_thread::yield();
}

std::vector<py::bytes> receive_frames(UdpPort& port) {
  std::vector<py::bytes> frames;
  for (const auto frame : port.receive()) {
    frames.emplace_back(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  return frames;
}

// The payload of a frame, None where it is not the switch's to this end.
std::optional<py::bytes> open_envelope(Envelope& envelope, const std::string& frame) {
  const auto payload =
      envelope.open({reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()});
  if (!payload) return std::nullopt;
  return py::bytes(reinterpret_cast<const char*>(payload->data()), payload->size());
}

py::bytes put_into_envelope(const Envelope& envelope, const std::string& payload) {
  std::string frame(kEnvelopeBytes, '\0');
  envelope.write(reinterpret_cast<std::uint8_t*>(frame.data()), payload.size());
  return frame + payload;
}

py::bytes read_ring(ring::RingLinks& links) {
  std::vector<std::uint8_t> bytes;
  links.read(bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

PYBIND11_MODULE(_machines, module) {
  module.def("frame_tag", [](const std::string& key, const std::string& frame) {
    std::array<std::uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), key.data(), bytes.size());
    return frame_tag(tag_key(bytes),
                     {reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()});
  });
  py::class_<Envelope>(module, "Envelope")
      .def(py::init(
          [](const std::string& local, std::uint16_t local_port, const std::string& peer,
             std::uint16_t peer_port) { return Envelope({local, local_port}, {peer, peer_port}); }))
      .def("open", &open_envelope)
      .def("put", &put_into_envelope);
  // What an attachment that waits for no switch says of itself before it was ever used.
  module.def("first_error",
             [](const std::string& path) { return ShmAttachment(path).last_error(); });
  py::class_<ring::RingLinks>(module, "RingLinks")
      .def(py::init([](std::uint16_t next, std::uint32_t gen, std::uint32_t rank,
                       std::uint32_t ranks, std::uint32_t slots, std::uint32_t lanes) {
        return std::make_unique<ring::RingLinks>(
            UdpAddress{"127.0.0.1", 0}, UdpAddress{"127.0.0.1", next}, ring::Transport::kTcp,
            ring::Greeting{gen, rank, ranks, slots, lanes});
      }))
      .def("keep", [](ring::RingLinks& links) { links.keep(monotonic_now()); })
      .def("queue",
           [](ring::RingLinks& links, const std::string& bytes) {
             links.queue({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
           })
      .def("lost", [](const ring::RingLinks& links) { return links.lost(monotonic_now()); })
      .def_property_readonly("backlog", &ring::RingLinks::backlog)
      .def("flush", &ring::RingLinks::flush)
      .def("read", &read_ring)
      .def_property_readonly("joined", &ring::RingLinks::joined)
      .def_property_readonly("errors", &ring::RingLinks::errors)
      .def_property_readonly("port", &ring::RingLinks::port)
      .def_property_readonly("descriptor", &ring::RingLinks::descriptor);
  py::class_<UdpPort>(module, "UdpPort")
      .def(py::init([](std::uint16_t peer, std::size_t frame_bytes) {
        return std::make_unique<UdpPort>(UdpAddress{"127.0.0.1", 0}, UdpAddress{"127.0.0.1", peer},
                                         frame_bytes, 512);
      }))
      .def("send", &send_frames, py::arg("frames"), py::arg("in_place") = std::vector<bool>{})
      .def("receive", &receive_frames)
      .def("discard",
           [](UdpPort& port, const std::string& frame) {
             std::memcpy(port.stage(), frame.data(), frame.size());
             port.commit(frame.size());
             port.discard();
           })
      .def_property_readonly("local", [](const UdpPort& port) { return port.local().port; })
      .def_property_readonly("foreign", &UdpPort::foreign)
      .def_property_readonly("errors", &UdpPort::errors);
  py::class_<SenderWindow>(module, "SenderWindow")
      .def(py::init<Seq, std::uint32_t, std::uint32_t>())
      .def("queue", &SenderWindow::queue)
      .def("take", &take)
      .def("on_ack", &on_ack)
      .def("on_timeout", &SenderWindow::on_timeout)
      .def("on_missing", &SenderWindow::on_missing)
      .def("on_late", &SenderWindow::on_late)
      .def_property_readonly("acked", &SenderWindow::acked)
      .def_property_readonly("next", &SenderWindow::next)
      .def_property_readonly("end", &SenderWindow::end)
      .def_property_readonly("credit", &SenderWindow::credit)
      .def_property_readonly("outstanding", &SenderWindow::outstanding)
      .def_property_readonly("idle", &SenderWindow::idle)
      .def_property_readonly("starved", &SenderWindow::starved);

  py::class_<ConsumerWindow>(module, "ConsumerWindow")
      .def(py::init<Seq, std::uint32_t>())
      .def("classify", &classify)
      .def("hold", &ConsumerWindow::hold)
      .def("pass_on", &ConsumerWindow::pass)
      .def("consume", &ConsumerWindow::consume)
      .def("place", &ConsumerWindow::place)
      .def_property_readonly("ready", &ConsumerWindow::ready)
      .def("missing", &ConsumerWindow::missing)
      .def_property_readonly("ack", &ConsumerWindow::ack)
      .def_property_readonly("consumed", &ConsumerWindow::consumed)
      .def_property_readonly("credit", &ConsumerWindow::credit);

  py::class_<RetransmitTimer>(module, "RetransmitTimer")
      .def(py::init([](Nanos first, Nanos least, Nanos most, std::uint32_t seed) {
        return RetransmitTimer({first, least, most}, seed);
      }))
      .def("on_sent", &RetransmitTimer::on_sent)
      .def("on_progress", &RetransmitTimer::on_progress)
      .def("on_expired", &RetransmitTimer::on_expired)
      .def("expired", &RetransmitTimer::expired)
      .def_property_readonly("deadline", &RetransmitTimer::deadline)
      .def_property_readonly("timeout", &RetransmitTimer::timeout)
      .def_property_readonly("round_trip", &RetransmitTimer::round_trip);

  py::class_<SilenceTimer>(module, "SilenceTimer")
      .def(py::init())
      .def("on_sum", &SilenceTimer::on_sum)
      .def("on_loss", &SilenceTimer::on_loss)
      .def("on_round_trip", &SilenceTimer::on_round_trip)
      .def("on_asked", &SilenceTimer::on_asked)
      .def("call_after", &SilenceTimer::call_after)
      .def("on_duplicate", &SilenceTimer::on_duplicate)
      .def("expired", &SilenceTimer::expired)
      .def_property_readonly("deadline", &SilenceTimer::deadline);

  py::class_<Heartbeat>(module, "Heartbeat")
      .def(py::init([](Seq base, std::uint32_t depth, Nanos delay, Nanos shortest, Nanos longest) {
        return Heartbeat(base, depth, {delay, shortest, longest});
      }))
      .def("on_window", &Heartbeat::on_window)
      .def("on_round_trip", &Heartbeat::on_round_trip)
      .def("on_message_end", &Heartbeat::on_message_end)
      .def("on_duplicate", &Heartbeat::on_duplicate)
      .def("on_sent", &Heartbeat::on_sent)
      .def("on_carried", &Heartbeat::on_carried)
      .def("due", &Heartbeat::due)
      .def_property_readonly("deadline", &Heartbeat::deadline);

  py::class_<ChokedPeer>(module, "ChokedPeer")
      .def(py::init<std::uint16_t, std::uint32_t, std::uint16_t>())
      .def("exchange", &ChokedPeer::exchange)
      .def_property_readonly("socket_stalls", &ChokedPeer::socket_stalls)
      .def_property_readonly("local", &ChokedPeer::local);

  py::class_<SlotRing>(module, "SlotRing")
      .def(py::init([](Seq base, std::uint32_t window, std::uint32_t slots, Nanos first,
                       Nanos least, Nanos most, std::uint32_t seed) {
        return SlotRing(base, window, slots, {first, least, most}, seed);
      }))
      .def("begin", &SlotRing::begin)
      .def("on_sum",
           [](SlotRing& ring, Seq seq, Nanos now) { return name_of(ring.on_sum(seq, now)); })
      .def("on_confirmation", [](SlotRing& ring, Seq seq,
                                 Nanos now) { return name_of(ring.on_confirmation(seq, now)); })
      .def("take_retry", &take_retry)
      .def("awaits_sum", &SlotRing::awaits_sum)
      .def_property_readonly("lacks", &SlotRing::lacks)
      .def_property_readonly("deadline", &SlotRing::deadline)
      .def_property_readonly("open", &SlotRing::open)
      .def_property_readonly("idle", &SlotRing::idle)
      .def_property_readonly("oldest", &SlotRing::oldest)
      .def_property_readonly("next", &SlotRing::next);

  add_engine_turns(module);
  add_rail_costs(module);

  py::class_<rails::RailHealth>(module, "RailHealth")
      .def(py::init<std::uint32_t>())
      .def("learn",
           [](rails::RailHealth& health,
              const std::vector<
                  std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>>& said) {
             std::vector<rails::RoundRecord> records;
             for (const auto& [planned, clock, suspected, settled] : said) {
               records.push_back({planned, clock, suspected, settled, 0, 0});
             }
             const rails::Verdict verdict = health.learn(records);
             return std::make_tuple(verdict.from, verdict.asked);
           })
      .def("latest_of",
           [](rails::RailHealth& health, const std::vector<std::uint32_t>& late_us) {
             std::vector<rails::RoundRecord> records(late_us.size());
             for (std::size_t i = 0; i < late_us.size(); ++i) records[i].late_us = late_us[i];
             return health.learn(records).late_us;
           })
      .def_property_readonly("up", &rails::RailHealth::up)
      .def("state", [](const rails::RailHealth& health,
                       std::uint32_t rail) { return static_cast<int>(health.of(rail)); })
      .def("carrier", &rails::RailHealth::carrier);

  py::class_<RollCall>(module, "RollCall")
      .def(py::init<std::uint32_t, std::uint32_t>())
      .def("on_call", &RollCall::on_call)
      .def("on_round_trip", &RollCall::on_round_trip)
      .def("on_waiting", &RollCall::on_waiting)
      .def("on_said", &RollCall::on_said)
      .def("due", &RollCall::due)
      .def_property_readonly("deadline", &RollCall::deadline)
      .def("all_heard_at", &RollCall::all_heard_at)
      .def("missing", &RollCall::missing)
      .def("to_name", &RollCall::to_name);

  py::class_<rails::OwnLateness>(module, "OwnLateness")
      .def(py::init<>())
      .def("on_woken", &rails::OwnLateness::on_woken)
      .def_property_readonly("worst", &rails::OwnLateness::worst);

  py::class_<rails::Lateness>(module, "Lateness")
      .def(py::init<>())
      .def("start", &rails::Lateness::start)
      .def("excuse", &rails::Lateness::excuse)
      .def("heard", &rails::Lateness::heard)
      .def("late", &rails::Lateness::late);

  module.def("check", &check, py::arg("frame"), py::arg("gen"), py::arg("sums"),
             py::arg("parameters"), py::arg("merged"), py::arg("lanes"), py::arg("param_bytes"),
             py::arg("confirmations") = false, py::arg("packed") = false);
  module.def("newer", &newer);
  module.def("later", &later);
  module.def("earlier", &earlier);
}
