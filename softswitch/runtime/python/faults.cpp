#include "faults.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "catchment/softswitch/port_loop.hpp"
#include "fault_port.hpp"

namespace catchment::softswitch {

namespace py = pybind11;

namespace {

PortFaults parsed(const std::string& text) {
  auto faults = PortFaults::parse(text);
  if (!faults.ok()) {
    throw py::value_error(faults.status().message());
  }
  return faults.value();
}

/// A port whose wire is a list: hands out frames, keeps what it is to send.
class ListPort final : public Port {
 public:
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool up() const override { return true; }
  [[nodiscard]] int descriptor() const override { return -1; }
  Received receive(std::vector<rt::InputFrame>& frames) override {
    Received out;
    for (; out.frames < kBatch && next < waiting.size(); ++out.frames, ++next) {
      frames.push_back({reinterpret_cast<const std::uint8_t*>(waiting[next].data()),
                        static_cast<std::uint32_t>(waiting[next].size()), 0});
    }
    return out;
  }
  Sent send(std::span<const rt::OutFrame> frames) override {
    Sent out;
    for (const rt::OutFrame& frame : frames.first(std::min(frames.size(), kBatch / 2))) {
      if (room_until_full == 0) {
        out.full = true;
        break;
      }
      --room_until_full;
      sent.emplace_back(reinterpret_cast<const char*>(frame.data), frame.length);
      ++out.frames;
      ++out.delivered;
      out.bytes += frame.length;
    }
    return out;
  }
  std::string check_link() override { return {}; }

  std::vector<std::string> waiting;
  std::size_t next = 0;
  std::vector<std::string> sent;
  std::size_t room_until_full = ~std::size_t{0};

 private:
  std::string name_ = "list";
};

py::dict to_dict(const FaultCounters& counters) {
  py::dict out;
  out["seen"] = counters.seen;
  out["lost"] = counters.lost;
  out["duplicated"] = counters.duplicated;
  out["reordered"] = counters.reordered;
  out["delayed"] = counters.delayed;
  out["overflow"] = counters.overflow;
  return out;
}

py::list to_list(const std::vector<std::string>& frames) {
  py::list out;
  for (const std::string& frame : frames) {
    out.append(py::bytes(frame));
  }
  return out;
}

/// The nanoseconds at which frames of these lengths leave a lane, by the times at which they
/// arrive, which rise; -1 for those dropped. No clock is asked: the times are all that counts.
std::vector<std::int64_t> fault_times(const std::string& spec,
                                      const std::vector<std::size_t>& lengths,
                                      const std::vector<std::int64_t>& arrivals) {
  FaultLane lane;
  const PortFaults faults = parsed(spec);
  lane.set(faults.in, faults.seed, 0);
  const auto at = [](std::int64_t ns) {
    return FaultLane::Clock::time_point(std::chrono::hours(1) + std::chrono::nanoseconds(ns));
  };
  std::vector<std::int64_t> left(lengths.size(), -1);
  std::vector<FaultLane::Bytes> out;
  const auto note = [&](std::int64_t ns) {
    for (const FaultLane::Bytes frame : out) {
      std::uint32_t number = 0;
      std::memcpy(&number, frame.data(), sizeof number);
      left[number] = ns;
    }
    out.clear();
  };
  const auto release = [&](FaultLane::Clock::time_point until) {
    while (lane.due() <= until && lane.due() != FaultLane::Clock::time_point::max()) {
      const auto due = lane.due();
      lane.release(due, kBatch, out);
      note((due - at(0)).count());
    }
  };
  std::vector<std::uint8_t> frame;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    release(at(arrivals.at(i)));
    frame.assign(std::max(lengths[i], sizeof(std::uint32_t)), 0);
    const auto number = static_cast<std::uint32_t>(i);
    std::memcpy(frame.data(), &number, sizeof number);
    lane.admit(frame, at(arrivals[i]), out);
    note(arrivals[i]);
  }
  release(FaultLane::Clock::time_point::max());
  return left;
}

/// What comes out of a port that receives all these frames at once; waits for those that are held.
py::tuple faults_in(const std::string& spec, std::uint32_t number,
                    const std::vector<std::string>& frames) {
  auto inner = std::make_unique<ListPort>();
  ListPort& list = *inner;
  list.waiting = frames;
  FaultPort port(std::move(inner), number);
  port.set(parsed(spec));
  std::vector<std::string> out;
  std::vector<rt::InputFrame> got;
  while (list.next < frames.size() || port.due_in() != FaultLane::Clock::time_point::max()) {
    got.clear();
    port.receive(got);
    for (const rt::InputFrame& frame : got) {
      out.emplace_back(reinterpret_cast<const char*>(frame.data), frame.length);
    }
  }
  return py::make_tuple(to_list(out), to_dict(port.counters_in()));
}

/// What reaches the wire of a port that is given all these frames; the wire takes `room` frames and
/// then has none for once.
py::tuple faults_out(const std::string& spec, std::uint32_t number, std::vector<std::string> frames,
                     std::size_t room) {
  auto inner = std::make_unique<ListPort>();
  ListPort& list = *inner;
  list.room_until_full = room;
  FaultPort port(std::move(inner), number);
  port.set(parsed(spec));
  std::vector<rt::OutFrame> outgoing;
  for (std::string& frame : frames) {
    outgoing.push_back({reinterpret_cast<std::uint8_t*>(frame.data()),
                        static_cast<std::uint32_t>(frame.size()), number});
  }
  std::span<const rt::OutFrame> left = outgoing;
  std::uint64_t delivered = 0;
  while (!left.empty() || port.due_out() != FaultLane::Clock::time_point::max()) {
    const Sent sent = port.send(left);
    left = left.subspan(sent.frames);
    delivered += sent.delivered;
    if (sent.full) {
      list.room_until_full = ~std::size_t{0};
    }
  }
  return py::make_tuple(to_list(list.sent), to_dict(port.counters_out()), delivered);
}

}  // namespace

void bind_faults(py::module_& module) {
  using namespace py::literals;
  module.def("parse_faults", [](const std::string& text) { return parsed(text).text(); });
  module.def("fault_times", &fault_times, "spec"_a, "lengths"_a, "arrivals"_a);
  module.def("faults_in", &faults_in, "spec"_a, "port"_a, "frames"_a);
  module.def("faults_out", &faults_out, "spec"_a, "port"_a, "frames"_a, "room"_a = ~std::size_t{0});
}

}  // namespace catchment::softswitch
