// bare-forwarder IN,IN,... OUT [every|last]: the least that a switch on AF_PACKET can do.
//
// Forwards frames of the input interfaces to the output interface, every one (default) or those of
// the last input only, as a switch that adds up sends one frame for many; epoll, recvmmsg,
// sendmmsg. Prints "ready"; SIGTERM ends it.
#include <sys/epoll.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "packet_io.hpp"

namespace {

volatile std::sig_atomic_t ended = 0;

}  // namespace

int main(int argc, char** argv) {
  using namespace catchment::bench;
  std::string sources;
  std::string sink;
  std::string mode = "every";
  CLI::App app("The least that a switch on AF_PACKET can do.", "bare-forwarder");
  app.add_option("inputs", sources, "interfaces, with commas between them")->required();
  app.add_option("output", sink, "interface")->required();
  app.add_option("mode", mode, "frames of every input are forwarded, or of the last one")
      ->check(CLI::IsMember({"every", "last"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::signal(SIGTERM, [](int) { ended = 1; });
  try {
    std::vector<RawSocket> inputs;
    for (const std::string& name : split(sources)) {
      inputs.emplace_back(name);
    }
    const RawSocket output{sink};
    const bool last_only = mode == "last";
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      epoll_ctl(epoll, EPOLL_CTL_ADD, inputs[i].fd(), &event);
    }
    Batch batch;
    std::puts("ready");
    std::fflush(stdout);
    std::array<epoll_event, 64> events;
    while (ended == 0) {
      const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 50);
      for (int i = 0; i < count; ++i) {
        const std::size_t input = events[static_cast<std::size_t>(i)].data.u64;
        const std::size_t frames = batch.receive(inputs[input].fd());
        if (frames > 0 && (!last_only || input + 1 == inputs.size())) {
          batch.send(output.fd(), frames);
        }
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare-forwarder: %s\n", error.what());
    return 1;
  }
  return 0;
}
