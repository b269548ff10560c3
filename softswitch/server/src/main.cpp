// catchment-switch: a packet loop and a P4Runtime server in one process.
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "admin.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/port_loop.hpp"
#include "connections.hpp"
#include "control.hpp"
#include "ending.hpp"
#include "handshake_failures.hpp"
#include "json.hpp"
#include "last_resort.hpp"
#include "last_words.hpp"
#include "listener.hpp"
#include "log.hpp"
#include "options.hpp"
#include "program_store.hpp"
#include "rpc_error.hpp"
#include "service.hpp"
#include "start_error.hpp"

namespace catchment::server {

namespace {

// An orderly end takes less than one second.
constexpr std::chrono::seconds kEndingPatience{3};

std::string ready_line(const Options& options, const std::string& address, bool has_program) {
  std::string ports;
  for (const auto& [number, spec] : options.ports) {
    ports += (ports.empty() ? "" : ", ") + json_string(std::to_string(number)) + ": " +
             json_string(spec.text());
  }
  return "{\"event\": \"ready\", \"grpc\": " + json_string(address) +
         ", \"device_id\": " + std::to_string(options.device_id) +
         ", \"pid\": " + std::to_string(::getpid()) + ", \"ports\": {" + ports +
         "}, \"program\": " + (has_program ? json_string(options.program.string()) : "null") + "}";
}

p4::v1::ForwardingPipelineConfig first_config(const Options& options) {
  p4::v1::ForwardingPipelineConfig config;
  const std::string text = read_file(options.p4info);
  if (!google::protobuf::TextFormat::ParseFromString(text, config.mutable_p4info())) {
    throw StartError("--p4info: " + options.p4info.string() +
                     " is not a P4Info in protobuf text format");
  }
  config.set_p4_device_config("sha256:" + sha256_hex(read_file(options.program)));
  return config;
}

void bind_ports(const Options& options, softswitch::PortLoop& loop) {
  for (const auto& [number, spec] : options.ports) {
    const auto status = loop.add_port(number, spec);
    if (!status.ok()) {
      throw StartError("port " + std::to_string(number) + "=" + spec.text() + ": " +
                       status.message());
    }
  }
  for (const auto& [number, faults] : options.faults) {
    if (const auto status = loop.set_faults(number, faults); !status.ok()) {
      throw StartError("--fault: " + status.message());
    }
  }
}

class LoopThread {
 public:
  explicit LoopThread(softswitch::PortLoop& loop) : loop_(loop), thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

 private:
  softswitch::PortLoop& loop_;
  std::thread thread_;
};

void run(const Options& options, Ending& ending, std::optional<LastResort>& last_resort) {
  const Log log(options.log_level);
  softswitch::DataplaneOptions dataplane_options;
  dataplane_options.cpu_port = options.cpu_port;
  dataplane_options.drop_port = options.drop_port;
  dataplane_options.max_steps = options.max_steps;
  dataplane_options.in_callers = options.in_callers;
  softswitch::Dataplane dataplane(dataplane_options);
  dataplane.on_step_limit([&](const std::string& text) { log.info(text); });
  softswitch::PortLoop loop(dataplane, options.workers);
  loop.on_event([&](const std::string& text) { log.info(text); });
  bind_ports(options, loop);
  Connections connections(receive_limits(options), log);
  const HandshakeFailures handshake_failures(log, connections);
  std::optional<Admin> admin;
  if (!options.admin.empty()) {
    admin.emplace(options.admin, loop, connections);
  }

  std::vector<std::filesystem::path> programs;
  if (!options.program.empty()) {
    programs.push_back(options.program);
  }
  ProgramStore store(options.program_dir, programs);
  ControlOptions control_options;
  control_options.device_id = options.device_id;
  control_options.max_status_bytes = options.max_status_bytes;
  for (const auto& [number, spec] : options.ports) {
    control_options.ports.insert({number, options.cpu_port});
  }
  Control control(control_options, log, dataplane, store,
                  [&](std::string frame) { return loop.packet_out(std::move(frame)); });
  if (!options.program.empty()) {
    control.start_with(first_config(options));
  }
  ServiceOptions service_options;
  service_options.client_names = options.tls_client_names;
  service_options.stream_timeout = std::chrono::milliseconds(options.stream_timeout_ms);
  Service service(service_options, log, control, connections);
  const auto [server, address] = listen(options, service, connections);
  {
    const LoopThread thread(loop);
    std::cout << ready_line(options, address, !options.program.empty()) << std::endl;
    log.info("listening on " + address);
    log.info("ending: " + ending.wait());
    last_resort.emplace(kEndingPatience, [log] {
      log.info("a peer that has stopped in the data plane does not go on: ending without it");
    });
    connections.stop();
    server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  }
}

/// Lets nobody else write in the folder of its sockets where the umask, as many a daemon's, keeps
/// nothing from anybody.
void keep_files() {
  constexpr ::mode_t kUsual = 022;
  if (const ::mode_t before = umask(kUsual); before != 0) {
    umask(before);
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_files();
  say_last_words();
  try {
    Ending ending;
    const Options options = parse_options({argv + 1, argv + argc});
    if (!options.help.empty()) {
      std::cout << options.help;
      return 0;
    }
    if (options.owner != 0) {
      ending.with_owner(options.owner);
    }
    std::optional<LastResort> last_resort;
    run(options, ending, last_resort);
    return 0;
  } catch (const UsageError& error) {
    std::cerr << "catchment-switch: " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "catchment-switch: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace catchment::server

int main(int argc, char** argv) { return catchment::server::main(argc, argv); }
