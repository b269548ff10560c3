// The endpoint's state machines for Python, so that tests can hold them against slow models.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "consumer_window.hpp"
#include "frame_check.hpp"
#include "heartbeat.hpp"
#include "retransmit_timer.hpp"
#include "sender_window.hpp"

namespace py = pybind11;
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

// What is wrong with a frame, or "" when a stream with these rules takes it.
std::string check(const py::bytes& frame, std::uint16_t gen, bool sums, bool parameters,
                  bool merged, std::uint32_t lanes, std::uint32_t param_bytes) {
  const auto text = static_cast<std::string_view>(frame);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  catchment::wire::Header header;
  auto reject = check_envelope(bytes, header);
  if (!reject && header.gen != gen) reject = Reject::kGeneration;
  if (!reject) {
    reject =
        check_content(header, bytes.size(), {gen, sums, parameters, merged, lanes, param_bytes});
  }
  return reject ? std::string(name(*reject)) : "";
}

}  // namespace

PYBIND11_MODULE(_machines, module) {
  py::class_<SenderWindow>(module, "SenderWindow")
      .def(py::init<Seq, std::uint32_t>())
      .def("queue", &SenderWindow::queue)
      .def("take", &take)
      .def("on_ack", &on_ack)
      .def("on_timeout", &SenderWindow::on_timeout)
      .def("on_missing", &SenderWindow::on_missing)
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

  py::class_<Heartbeat>(module, "Heartbeat")
      .def(py::init([](Seq base, std::uint32_t depth, Nanos delay, Nanos shortest, Nanos longest) {
        return Heartbeat(base, depth, {delay, shortest, longest});
      }))
      .def("on_window", &Heartbeat::on_window)
      .def("on_message_end", &Heartbeat::on_message_end)
      .def("on_duplicate", &Heartbeat::on_duplicate)
      .def("on_sent", &Heartbeat::on_sent)
      .def("due", &Heartbeat::due)
      .def_property_readonly("deadline", &Heartbeat::deadline);

  module.def("check", &check);
  module.def("newer", &newer);
  module.def("later", &later);
  module.def("earlier", &earlier);
}
