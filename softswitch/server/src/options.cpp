#include "options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <utility>

#include "catchment/softswitch/rt/engine.hpp"
#include "fault_option.hpp"

namespace catchment::server {

namespace {

constexpr std::uint32_t kMostWorkers = 64;
constexpr std::uint32_t kHighestPort = 511;

/// Accepts decimal numbers of a range, and nothing else.
template <class Number>
CLI::Validator number_from(Number least, Number most) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  return {[=](const std::string& text) {
            Number value{};
            const char* end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, value);
            const bool good =
                error == std::errc() && rest == end && value >= least && value <= most;
            return good ? std::string() : "'" + text + "' is not a number from " + range;
          },
          range};
}

void add_port(const std::string& text, Options& options) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    throw UsageError("--port: '" + text +
                     "' is not NUMBER=INTERFACE, NUMBER=shm:PATH, NUMBER=cable:PATH or "
                     "NUMBER=udp:LOCAL,PEER");
  }
  std::string number = text.substr(0, equals);
  if (const std::string wrong = number_from<std::uint32_t>(0, kHighestPort)(number);
      !wrong.empty()) {
    throw UsageError("--port: " + wrong);
  }
  const auto spec = softswitch::PortSpec::parse(text.substr(equals + 1));
  if (!spec.ok()) {
    throw UsageError("--port: " + spec.status().message());
  }
  if (!options.ports.emplace(std::stoul(number), spec.value()).second) {
    throw UsageError("--port: number " + number + " is given twice");
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

bool is_reached_from_elsewhere(const std::string& address) {
  return !address.starts_with("unix:") && !address.starts_with("127.") &&
         !address.starts_with("localhost:") && !address.starts_with("[::1]:");
}

std::string default_address(std::uint64_t device_id) {
  const char* folder = std::getenv("CATCHMENT_RUN_DIR");
  const bool named = folder != nullptr && *folder != '\0';
  return "unix:" + std::string(named ? folder : "/run/catchment") + "/p4runtime-" +
         std::to_string(device_id) + ".sock";
}

void check_together(const Options& options) {
  if (options.tls_client_ca.empty() && !options.plaintext &&
      is_reached_from_elsewhere(options.grpc)) {
    throw UsageError("--grpc: other machines reach " + options.grpc +
                     ": give --tls-cert, --tls-key and --tls-client-ca, or --allow-plaintext if "
                     "whoever is there may control this switch");
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

void declare_ports(CLI::App& app, Options& options) {
  const auto each = [&](const std::string& name, const std::string& form, const std::string& help,
                        void (*add)(const std::string&, Options&)) {
    app.add_option_function<std::vector<std::string>>(
           name,
           [&options, add](const std::vector<std::string>& texts) {
             for (const std::string& text : texts) {
               add(text, options);
             }
           },
           help)
        ->take_all()
        ->allow_extra_args(false)
        ->type_name(form);
  };
  each(
      "--port", "N=SPEC",
      "binds port N; once per port. SPEC: a network interface (IFACE or eth:IFACE), shm:PATH, "
      "memory shared with a process of this machine, cable:PATH, the other end of another switch's "
      "shm:PATH, or udp:LOCAL,PEER[,as=ADDRESS][,shared], datagrams between two IP:PORT (the "
      "program sees them as sent to ADDRESS)",
      add_port);
  each("--fault", "N:SPEC",
       "faults of port N, below the program: loss=P,dup=P,reorder=P (0 to 1), delay=T,jitter=T "
       "(200us, 1ms), rate=R (100mbit), queue=B (256k), each for both directions or with in. or "
       "out. "
       "before it, and seed=S",
       add_fault);
  app.add_option("--workers", options.workers, "packet threads, which share out the ports")
      ->check(number_from<std::uint32_t>(1, kMostWorkers));
  app.add_flag("--in-callers", options.in_callers,
               "processes of this user on shm: ports run the program themselves, on the switch's "
               "state, if they ask for it");
  app.add_option("--cpu-port", options.cpu_port, "frames to this port become packet-ins")
      ->check(number_from<std::uint32_t>(0, kHighestPort));
  app.add_option("--drop-port", options.drop_port, "frames to this port are dropped")
      ->check(number_from<std::uint32_t>(0, kHighestPort));
}

void declare_program(CLI::App& app, Options& options) {
  auto* program = app.add_option("--program", options.program,
                                 "a compiled program (.so) to run from the start; needs --p4info");
  auto* p4info = app.add_option("--p4info", options.p4info,
                                "the P4Info of --program (protobuf text); needs --program");
  program->needs(p4info);
  p4info->needs(program);
  app.add_option("--program-dir", options.program_dir,
                 "compiled programs (*.so, subdirectories too) that a client may load");
  app.add_option("--max-steps", options.max_steps,
                 "rounds of loops that a frame may take, with all of its copies and passes, before "
                 "it is dropped")
      ->check(number_from<std::uint32_t>(1, softswitch::rt::kMostMaxSteps));
}

void declare_server(CLI::App& app, Options& options) {
  app.add_option("--grpc", options.grpc,
                 "where P4Runtime listens: unix:PATH, a socket file for this user alone (default: "
                 "p4runtime-ID.sock in /run/catchment or $CATCHMENT_RUN_DIR), or ADDRESS:PORT "
                 "(port 0: any free port), which every user of this machine reaches unless there "
                 "is TLS with client certificates")
      ->type_name("ADDRESS");
  app.add_flag("--allow-plaintext", options.plaintext,
               "listen without TLS even where other machines reach it: they control the switch");
  app.add_option("--device-id", options.device_id, "the P4Runtime device id")
      ->check(number_from<std::uint64_t>(1, std::numeric_limits<std::uint64_t>::max()));
  app.add_option("--admin", options.admin,
                 "a Unix socket for `ports` and `clients` (statistics as JSON) and `fault N:SPEC`");
  app.add_option("--max-status-bytes", options.max_status_bytes,
                 "longest error status sent to a client (8192 is gRPC's own default)")
      ->check(number_from<std::size_t>(1024, std::size_t{1} << 30));
  app.add_option("--max-request-bytes", options.max_request_bytes,
                 "longest message that is taken from a client, whoever that is")
      ->check(number_from<std::uint32_t>(1U << 16, 1U << 30));
  app.add_option("--stream-timeout-ms", options.stream_timeout_ms,
                 "a StreamChannel without a message for so long is ended")
      ->check(number_from<std::uint32_t>(1, 3'600'000));
  auto* cert = app.add_option("--tls-cert", options.tls_cert,
                              "certificate chain (PEM) of the server; needs --tls-key");
  auto* key = app.add_option("--tls-key", options.tls_key,
                             "private key (PEM) of the server; needs --tls-cert");
  cert->needs(key);
  key->needs(cert);
  auto* authority = app.add_option("--tls-client-ca", options.tls_client_ca,
                                   "clients must show a certificate signed by this authority (PEM)")
                        ->needs(cert);
  app.add_option("--tls-client-name", options.tls_client_names,
                 "the common name that a client's certificate must have; may be given more than "
                 "once (default: any)")
      ->take_all()
      ->allow_extra_args(false)
      ->needs(authority);
  app.add_option("--tls-crl-dir", options.tls_crl_dir,
                 "folder of revocation lists by hash (`openssl rehash`) for --tls-client-ca")
      ->needs(authority);
  app.add_option("--owner", options.owner, "ends with the process of this id, however that ends")
      ->check(number_from<int>(1, std::numeric_limits<int>::max()));
  const std::map<std::string, LogLevel> levels{
      {"error", LogLevel::error}, {"info", LogLevel::info}, {"debug", LogLevel::debug}};
  app.add_option_function<std::string>(
         "--log-level",
         [&options, levels](const std::string& text) {
           const auto level = levels.find(text);
           if (level == levels.end()) {
             throw UsageError("--log-level: '" + text + "' is not error, info or debug");
           }
           options.log_level = level->second;
         },
         "error, info or debug (default info), on stderr")
      ->type_name("LEVEL");
}

}  // namespace

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  CLI::App app("A P4 switch (v1model) on network interfaces, programmed through P4Runtime.",
               "catchment-switch");
  app.footer(
      "When it listens it prints one line of JSON on stdout: {\"event\": \"ready\", \"grpc\": "
      "ADDRESS, ...}.\nSIGTERM and SIGINT end it. Exit codes: 0 ended by a signal or with --owner, "
      "1 could not start, 2 wrong usage.");
  app.option_defaults()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->always_capture_default();
  declare_ports(app, options);
  declare_program(app, options);
  declare_server(app, options);
  try {
    // CLI11 takes what is left of the command line from its end.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    throw UsageError(text.substr(0, text.find(':')) + " needs a value");
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + "; see --help");
  }
  if (options.grpc.empty()) {
    options.grpc = default_address(options.device_id);
  }
  check_together(options);
  return options;
}

}  // namespace catchment::server
