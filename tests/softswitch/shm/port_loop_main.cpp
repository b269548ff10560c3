// The packet loop without the P4Runtime server, with catchment-switch's command line as far as the
// tests of shared-memory ports use it: small enough to build under the sanitizers.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/port_loop.hpp"

namespace {

using namespace catchment::softswitch;

[[noreturn]] void give_up(const std::string& why, int code) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(code);
}

PortLoop* running = nullptr;

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  DataplaneOptions options;
  options.in_callers =
      std::find(argv + 1, argv + argc, std::string_view("--in-callers")) != argv + argc;
  Dataplane dataplane(options);
  PortLoop loop(dataplane);
  loop.on_event([](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); });
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string option = argv[i];
    const std::string value = argv[i + 1];
    if (option == "--program") {
      if (const Status status = dataplane.load(value); !status.ok()) {
        give_up(status.message(), 1);
      }
    } else if (option == "--port") {
      const auto equals = value.find('=');
      const auto spec = PortSpec::parse(value.substr(equals + 1));
      if (!spec.ok()) {
        give_up(spec.status().message(), 2);
      }
      const auto number = static_cast<std::uint32_t>(std::stoul(value.substr(0, equals)));
      if (const Status status = loop.add_port(number, spec.value()); !status.ok()) {
        give_up(status.message(), 1);
      }
    }
  }
  running = &loop;
  std::signal(SIGTERM, [](int) { running->stop(); });
  std::printf("{\"event\": \"ready\", \"grpc\": \"none\"}\n");
  loop.run();
  return 0;
}
