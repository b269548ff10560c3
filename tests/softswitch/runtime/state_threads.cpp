// Threads that run frames of pairs.p4 on shared state beside threads that write its tables, and
// load it anew: to be built under ThreadSanitizer. Arguments: the compiled program, rounds, ids of
// the table and of its action, of its field and of its parameter.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/packets.hpp"

namespace {

using namespace catchment::softswitch;

void require(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
  }
}

std::string bytes_of(std::uint32_t port) {
  return {static_cast<char>(port >> 8), static_cast<char>(port)};
}

TableEntry entry_of(char** ids, std::uint32_t port) {
  const auto id = [&](int i) { return static_cast<std::uint32_t>(std::stoul(ids[i])); };
  TableEntry entry;
  entry.table_id = id(0);
  entry.match = {{id(2), MatchKind::exact, bytes_of(port), {}, 0}};
  entry.action = ActionCall{id(1), {{id(3), bytes_of(2)}}};
  return entry;
}

void run_frames(Dataplane& dataplane, int rounds, std::uint8_t value) {
  std::array<std::uint8_t, 6> frame{0, 0, 0, value, value, 0};
  std::vector<rt::OutFrame> out;
  for (int round = 0; round < rounds; ++round) {
    const rt::InputFrame in{frame.data(), frame.size(), 1};
    dataplane.packets().process({&in, 1}, out);
    dataplane.packets().sent(2, out.size(), 0, out);
    out.clear();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    return 2;
  }
  DataplaneOptions options;
  options.in_callers = true;
  Dataplane dataplane(options);
  require(dataplane.load(argv[1]));
  const int rounds = std::atoi(argv[2]);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] { run_frames(dataplane, rounds, 1); });
  threads.emplace_back([&] { run_frames(dataplane, rounds, 2); });
  std::thread control([&] {
    for (std::uint32_t port = 1; !done; port = port % 300 + 1) {
      static_cast<void>(dataplane.insert(entry_of(argv + 3, port)));
      static_cast<void>(dataplane.remove(entry_of(argv + 3, (port + 150) % 300 + 1)));
      static_cast<void>(dataplane.insert(MulticastGroup{port, {{1, 1}, {2, 1}}, {}}));
      static_cast<void>(dataplane.strays());
      dataplane.expire_idle(0);
    }
  });
  std::thread loading([&] {
    while (!done) {
      require(dataplane.load(argv[1]));
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  done = true;
  control.join();
  loading.join();
  const auto seen = dataplane.statistics(1);
  std::printf("%llu frames, %zu strays\n", static_cast<unsigned long long>(seen.rx_packets),
              dataplane.strays().size());
  return 0;
}
