#include "binding_values.hpp"

#include <algorithm>
#include <utility>

namespace py = pybind11;

namespace catchment::host {
namespace {

py::dict to_dict(const Durations& durations) {
  py::dict result;
  const std::uint64_t count = durations.count.get();
  result["count"] = count;
  result["total"] = seconds(durations.total.get());
  result["min"] = seconds(durations.least.get());
  result["max"] = seconds(durations.most.get());
  result["mean"] = count == 0 ? 0.0 : seconds(durations.total.get()) / static_cast<double>(count);
  return result;
}

// Beside the durations, how many there are of at most so many seconds: (bound, count), the count
// with those of all smaller bounds.
py::dict to_dict(const DurationHistogram& histogram) {
  py::dict result = to_dict(histogram.all);
  py::list buckets;
  std::uint64_t below = 0;
  for (std::size_t cell = 0; cell < DurationHistogram::kCells; ++cell) {
    below += histogram.cells[cell].get();
    buckets.append(py::make_tuple(static_cast<double>(std::uint64_t{1} << cell) * 1e-6, below));
  }
  result["buckets"] = buckets;
  return result;
}

}  // namespace

py::object to_dict(const std::optional<Failure>& failure) {
  if (!failure) return py::none();
  py::dict result;
  result["message"] = failure->message;
  result["kind"] = failure->kind;
  result["stream"] = failure->stream;
  result["seq"] = failure->seq ? py::object(py::int_(*failure->seq)) : py::object(py::none());
  result["peer"] = failure->peer;
  result["hint"] = failure->hint;
  result["fatal"] = failure->fatal;
  return result;
}

py::dict to_dict(const Stats& stats) {
  py::dict result;
  result["frames_sent"] = stats.frames_sent.get();
  result["frames_received"] = stats.frames_received.get();
  result["bytes_sent"] = stats.bytes_sent.get();
  result["bytes_received"] = stats.bytes_received.get();
  result["retransmissions"] = stats.retransmissions.get();
  result["timeouts"] = stats.timeouts.get();
  result["heartbeats_sent"] = stats.heartbeats_sent.get();
  result["heartbeats_received"] = stats.heartbeats_received.get();
  result["frames_asked_for"] = stats.frames_asked_for.get();
  result["saturated"] = stats.saturated.get();
  result["nonfinite"] = stats.nonfinite.get();
  result["socket_errors"] = stats.socket_errors.get();
  py::dict rejects;
  for (std::size_t i = 0; i < kRejectCount; ++i) {
    rejects[py::str(std::string(name(static_cast<Reject>(i))))] = stats.rejects[i].get();
  }
  result["rejects"] = rejects;
  py::dict stalls;
  stalls["credit"] = to_dict(stats.credit_stalls);
  stalls["pull"] = to_dict(stats.pull_stalls);
  stalls["socket"] = to_dict(stats.socket_stalls);
  result["stalls"] = stalls;
  result["push_latency"] = to_dict(stats.push_latency);
  result["pull_latency"] = to_dict(stats.pull_latency);
  result["round_trips"] = to_dict(stats.round_trips);
  result["round_trip"] = seconds(stats.round_trip.get());
  result["retransmit_timeout"] = seconds(stats.retransmit_timeout.get());
  result["numbers_used"] = stats.numbers_used.get();
  result["in_flight"] = stats.in_flight.get();
  result["held"] = stats.held.get();
  return result;
}

// 32 digits; host/transport/stream.py has checked them.
static TagKey hex_key(const std::string& digits) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  }
  return tag_key(bytes);
}

StreamConfig stream(const std::string& name, const py::dict& fields, std::uint32_t window) {
  StreamConfig config;
  config.name = name + " gen " + std::to_string(fields["gen"].cast<int>());
  config.gen = fields["gen"].cast<std::uint16_t>();
  config.workers = fields["workers"].cast<std::uint32_t>();
  config.slots = fields["slots"].cast<std::uint32_t>();
  config.window = window == 0 ? config.slots : std::min(window, config.slots);
  config.base = fields["base_seq"].cast<std::uint32_t>();
  config.lanes = fields["lanes"].cast<std::uint32_t>();
  config.packed = fields["packed"].cast<bool>();
  config.param_bytes = fields["param_bytes"].cast<std::uint32_t>();
  if (const auto key = fields["key"].cast<std::string>(); !key.empty()) config.key = hex_key(key);
  config.key_frames = fields["key_frames"].cast<std::uint64_t>();
  return config;
}

UdpAddress address(const py::handle& pair) {
  const auto both = pair.cast<std::pair<std::string, std::uint16_t>>();
  return {both.first, both.second};
}

Nanos nanos(const py::handle& seconds) {
  return static_cast<Nanos>(std::min(seconds.cast<double>(), 1e8) * kNanosPerSecond);
}

EndpointConfig endpoint_config(const py::dict& fields) {
  EndpointConfig config;
  const auto role = fields["role"].cast<std::string>();
  const auto window = fields["window"].cast<std::uint32_t>();
  const auto streams = fields["streams"].cast<py::dict>();
  const auto pick = [&](const char* name) -> std::optional<StreamConfig> {
    if (!streams.contains(name)) return std::nullopt;
    return stream(name, streams[name].cast<py::dict>(), window);
  };
  if (role == "peer") {
    config.role = Role::kPeer;
    config.out = config.in = pick("stream");
  } else {
    config.role = role == "root" ? Role::kRoot : Role::kWorker;
    config.out = pick(role == "root" ? "parameters" : "gradients");
    config.in = pick(role == "root" ? "gradients" : "parameters");
  }
  config.wid = fields["wid"].cast<std::uint8_t>();
  const UdpAddress peer = address(fields["switch"]);
  config.peer = peer.host + ":" + std::to_string(peer.port);
  config.timeout = nanos(fields["timeout"]);
  return config;
}

}  // namespace catchment::host
