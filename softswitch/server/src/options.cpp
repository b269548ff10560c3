#include "options.hpp"

#include <charconv>
#include <functional>
#include <limits>

#include "fault_option.hpp"

namespace catchment::server {

namespace {

constexpr std::uint32_t kMostWorkers = 64;

template <class Number>
Number parse_number(const std::string& text, const std::string& option, Number least, Number most) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < least || value > most) {
    throw UsageError(option + ": '" + text + "' is not a number from " + std::to_string(least) +
                     " to " + std::to_string(most));
  }
  return value;
}

void parse_port(const std::string& text, Options& options) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    throw UsageError("--port: '" + text + "' is not NUMBER=INTERFACE or NUMBER=shm:PATH");
  }
  const auto number = parse_number<std::uint32_t>(text.substr(0, equals), "--port", 0, 511);
  const auto spec = softswitch::PortSpec::parse(text.substr(equals + 1));
  if (!spec.ok()) {
    throw UsageError("--port: " + spec.status().message());
  }
  if (!options.ports.emplace(number, spec.value()).second) {
    throw UsageError("--port: number " + std::to_string(number) + " is given twice");
  }
}

void add_fault(const std::string& text, Options& options) {
  const auto fault = parse_fault(text);
  if (!fault.ok()) {
    throw UsageError("--fault: " + fault.status().message());
  }
  if (!options.faults.emplace(fault.value().port, fault.value().faults).second) {
    throw UsageError("--fault: port " + std::to_string(fault.value().port) + " is given twice");
  }
}

LogLevel parse_log_level(const std::string& text) {
  if (text == "error") {
    return LogLevel::error;
  }
  if (text == "info") {
    return LogLevel::info;
  }
  if (text == "debug") {
    return LogLevel::debug;
  }
  throw UsageError("--log-level: '" + text + "' is not error, info or debug");
}

void check_together(const Options& options) {
  if (options.program.empty() != options.p4info.empty()) {
    throw UsageError("--program and --p4info belong together: give both or none");
  }
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    throw UsageError("--tls-cert and --tls-key belong together: give both or none");
  }
  if (!options.tls_client_ca.empty() && options.tls_cert.empty()) {
    throw UsageError("--tls-client-ca needs --tls-cert and --tls-key");
  }
  for (const auto& [number, faults] : options.faults) {
    if (!options.ports.contains(number)) {
      throw UsageError("--fault: there is no port " + std::to_string(number));
    }
  }
  for (const auto reserved : {options.cpu_port, options.drop_port}) {
    if (options.ports.contains(reserved)) {
      throw UsageError("--port: number " + std::to_string(reserved) +
                       " is the CPU port or the drop port");
    }
  }
}

using Setter = std::function<void(const std::string&, Options&)>;

std::map<std::string, Setter> setters() {
  const auto number = [](const std::string& option, std::uint32_t most, auto member) {
    return [=](const std::string& text, Options& options) {
      options.*member = parse_number<std::uint32_t>(text, option, 0, most);
    };
  };
  const auto path = [](std::filesystem::path Options::* member) {
    return [=](const std::string& text, Options& options) { options.*member = text; };
  };
  return {
      {"--grpc", [](const std::string& text, Options& options) { options.grpc = text; }},
      {"--device-id",
       [](const std::string& text, Options& options) {
         options.device_id = parse_number<std::uint64_t>(text, "--device-id", 1,
                                                         std::numeric_limits<std::uint64_t>::max());
       }},
      {"--port", parse_port},
      {"--fault", add_fault},
      {"--admin", path(&Options::admin)},
      {"--workers",
       [](const std::string& text, Options& options) {
         options.workers = parse_number<std::uint32_t>(text, "--workers", 1, kMostWorkers);
       }},
      {"--program", path(&Options::program)},
      {"--p4info", path(&Options::p4info)},
      {"--program-dir", path(&Options::program_dir)},
      {"--cpu-port", number("--cpu-port", 511, &Options::cpu_port)},
      {"--drop-port", number("--drop-port", 511, &Options::drop_port)},
      {"--max-status-bytes",
       [](const std::string& text, Options& options) {
         options.max_status_bytes =
             parse_number<std::size_t>(text, "--max-status-bytes", 1024, std::size_t{1} << 30);
       }},
      {"--tls-cert", path(&Options::tls_cert)},
      {"--tls-key", path(&Options::tls_key)},
      {"--tls-client-ca", path(&Options::tls_client_ca)},
      {"--owner",
       [](const std::string& text, Options& options) {
         options.owner = parse_number<int>(text, "--owner", 1, std::numeric_limits<int>::max());
       }},
      {"--log-level", [](const std::string& text,
                         Options& options) { options.log_level = parse_log_level(text); }},
  };
}

}  // namespace

Options parse_options(const std::vector<std::string>& arguments) {
  const auto known = setters();
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (name == "--help" || name == "-h") {
      options.help = true;
      return options;
    }
    std::string value;
    const auto equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto setter = known.find(name);
    if (setter == known.end()) {
      throw UsageError("unknown option '" + name + "'; see --help");
    }
    if (!joined) {
      if (++i == arguments.size()) {
        throw UsageError(name + " needs a value");
      }
      value = arguments[i];
    }
    setter->second(value, options);
  }
  check_together(options);
  return options;
}

std::string usage() {
  return R"(usage: catchment-switch [options]

A P4 switch (v1model) on network interfaces, programmed through P4Runtime.

  --grpc ADDRESS           where P4Runtime listens (default 127.0.0.1:9559; port 0: any free port;
                           unix:PATH: a socket file). Without TLS, keep it on loopback.
  --device-id N            the P4Runtime device id (default 1)
  --port N=SPEC            binds port N; once per port. SPEC: a network interface (IFACE or
                           eth:IFACE), or shm:PATH, memory shared with a process of this machine
  --fault N:SPEC           faults of port N, below the program: loss=P,dup=P,reorder=P (0 to 1),
                           delay=T,jitter=T (200us, 1ms), each for both directions or with in. or
                           out. before it, and seed=S
  --workers N              packet threads, which share out the ports (default 1)
  --admin PATH             a Unix socket for `ports` (statistics as JSON) and `fault N:SPEC`
  --program FILE.so        a compiled program to run from the start; needs --p4info
  --p4info FILE            the P4Info of --program (protobuf text)
  --program-dir DIRECTORY  compiled programs (*.so, subdirectories too) that a client may load
  --cpu-port N             frames to this port become packet-ins (default 510)
  --drop-port N            frames to this port are dropped (default 511)
  --max-status-bytes N     longest error status sent to a client (default 8192, gRPC's own default)
  --tls-cert FILE          certificate chain (PEM) of the server; needs --tls-key
  --tls-key FILE           private key (PEM) of the server
  --tls-client-ca FILE     clients must show a certificate signed by this authority (PEM)
  --owner PID              ends with this process, however that ends
  --log-level LEVEL        error, info or debug (default info), on stderr

When it listens it prints one line of JSON on stdout: {"event": "ready", "grpc": ADDRESS, ...}.
SIGTERM and SIGINT end it. Exit codes: 0 ended by a signal or with --owner, 1 could not start, 2 wrong usage.
)";
}

}  // namespace catchment::server
