// Faults as text.
#include "catchment/softswitch/faults.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <set>

namespace catchment::softswitch {

namespace {

constexpr double kLongestDelayNs = 10e9;
constexpr double kLeastRate = 1e3;
constexpr double kMostRate = 400e9;
constexpr double kMostQueue = 1024.0 * 1024 * 1024;
constexpr std::uint64_t kUsualQueue = 256 * 1024;

Status bad(std::string_view item, const std::string& why) {
  std::string text("'");
  text.append(item).append("': ").append(why);
  return {StatusCode::invalid_argument, text};
}

/// A number and what follows it.
std::optional<std::pair<double, std::string_view>> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return std::pair{value, text.substr(static_cast<std::size_t>(end - text.data()))};
}

std::optional<double> probability(std::string_view text) {
  const auto parsed = number(text);
  if (!parsed || !(parsed->second.empty() || parsed->second == "%")) {
    return std::nullopt;
  }
  const double value = parsed->second.empty() ? parsed->first : parsed->first / 100;
  return value >= 0 && value <= 1 ? std::optional(value) : std::nullopt;
}

std::optional<std::chrono::nanoseconds> duration(std::string_view text) {
  const auto parsed = number(text);
  if (!parsed) {
    return std::nullopt;
  }
  double unit = 0;
  if (parsed->second == "ns" || (parsed->second.empty() && parsed->first == 0)) {
    unit = 1;
  } else if (parsed->second == "us") {
    unit = 1e3;
  } else if (parsed->second == "ms") {
    unit = 1e6;
  } else if (parsed->second == "s") {
    unit = 1e9;
  }
  const double value = parsed->first * unit;
  if (unit == 0 || value < 0 || value > kLongestDelayNs) {
    return std::nullopt;
  }
  return std::chrono::nanoseconds(std::llround(value));
}

std::optional<double> bits_per_second(std::string_view text) {
  const auto parsed = number(text);
  if (!parsed) {
    return std::nullopt;
  }
  const double unit = parsed->second == "kbit"   ? 1e3
                      : parsed->second == "mbit" ? 1e6
                      : parsed->second == "gbit" ? 1e9
                                                 : 0;
  const double value = parsed->first * unit;
  return value >= kLeastRate && value <= kMostRate ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> bytes(std::string_view text) {
  const auto parsed = number(text);
  if (!parsed) {
    return std::nullopt;
  }
  const double unit = parsed->second.empty()  ? 1
                      : parsed->second == "k" ? 1024
                      : parsed->second == "m" ? 1024.0 * 1024
                                              : 0;
  const double value = parsed->first * unit;
  return value >= 1 && value <= kMostQueue ? std::optional<std::uint64_t>(std::llround(value))
                                           : std::nullopt;
}

std::optional<std::uint64_t> seed_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

Status set(FaultRates& rates, std::string_view key, std::string_view value, std::string_view item) {
  double FaultRates::* share = key == "loss"      ? &FaultRates::loss
                               : key == "dup"     ? &FaultRates::duplication
                               : key == "reorder" ? &FaultRates::reordering
                                                  : nullptr;
  if (share != nullptr) {
    const auto parsed = probability(value);
    if (!parsed) {
      return bad(item, "is not a probability from 0 to 1 (or 0% to 100%)");
    }
    rates.*share = *parsed;
    return {};
  }
  if (key == "rate") {
    const auto parsed = bits_per_second(value);
    if (!parsed) {
      return bad(item, "is not a rate from 1kbit to 400gbit with a unit (kbit, mbit, gbit)");
    }
    rates.rate = *parsed;
    return {};
  }
  if (key == "queue") {
    const auto parsed = bytes(value);
    if (!parsed) {
      return bad(item, "is not a size from 1 byte to 1024m (k: 1024 bytes, m: 1024 k)");
    }
    rates.queue = *parsed;
    return {};
  }
  std::chrono::nanoseconds FaultRates::* time = key == "delay"    ? &FaultRates::delay
                                                : key == "jitter" ? &FaultRates::jitter
                                                                  : nullptr;
  if (time == nullptr) {
    return bad(item,
               "is not loss=, dup=, reorder=, delay=, jitter=, rate=, queue= (with in. or out. "
               "before it: one "
               "direction), seed= or off");
  }
  const auto parsed = duration(value);
  if (!parsed) {
    return bad(item, "is not a time from 0 to 10s with a unit (ns, us, ms, s)");
  }
  rates.*time = *parsed;
  return {};
}

void append(std::string& text, const std::string& direction, const char* key, double value,
            const char* unit) {
  if (value != 0) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%s=%.9g%s", key, value, unit);
    text += direction + buffer + ",";
  }
}

void append(std::string& text, const std::string& direction, const FaultRates& rates) {
  append(text, direction, "loss", rates.loss, "");
  append(text, direction, "dup", rates.duplication, "");
  append(text, direction, "reorder", rates.reordering, "");
  append(text, direction, "delay", static_cast<double>(rates.delay.count()) / 1e3, "us");
  append(text, direction, "jitter", static_cast<double>(rates.jitter.count()) / 1e3, "us");
  append(text, direction, "rate", rates.rate / 1e3, "kbit");
  append(text, direction, "queue", static_cast<double>(rates.queue), "");
}

}  // namespace

Result<PortFaults> PortFaults::parse(std::string_view text) {
  PortFaults out;
  if (text == "off") {
    return out;
  }
  std::set<std::string_view> given;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const auto equals = item.find('=');
    std::string_view key = item.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    if (!given.insert(key).second) {
      return bad(item, "is given twice");
    }
    if (key == "seed") {
      const auto parsed = seed_number(value);
      if (!parsed) {
        return bad(item, "is not a whole number from 0 to 2^64 - 1");
      }
      out.seed = *parsed;
    } else {
      const bool in = !key.starts_with("out.");
      const bool outward = !key.starts_with("in.");
      if (!in || !outward) {
        key.remove_prefix(key.find('.') + 1);
      }
      for (auto [wanted, rates] : {std::pair{in, &out.in}, std::pair{outward, &out.out}}) {
        if (Status status = wanted ? set(*rates, key, value, item) : Status(); !status.ok()) {
          return status;
        }
      }
    }
    if (comma == std::string_view::npos) {
      break;
    }
    text.remove_prefix(comma + 1);
  }
  for (FaultRates* rates : {&out.in, &out.out}) {
    if (rates->jitter > rates->delay) {
      return Status(StatusCode::invalid_argument, "the jitter is larger than the delay");
    }
    if (rates->queue != 0 && rates->rate == 0) {
      return Status(StatusCode::invalid_argument, "a queue waits for a link: give a rate, too");
    }
    if (rates->rate != 0 && rates->queue == 0) {
      rates->queue = kUsualQueue;
    }
  }
  if (!given.contains("seed")) {
    std::random_device system;
    out.seed = system();
  }
  return out;
}

std::string PortFaults::text() const {
  if (in.none() && out.none()) {
    return "off";
  }
  std::string result;
  if (in == out) {
    append(result, "", in);
  } else {
    append(result, "in.", in);
    append(result, "out.", out);
  }
  return result + "seed=" + std::to_string(seed);
}

}  // namespace catchment::softswitch
