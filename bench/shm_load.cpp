// shm-load rate|ping FRAMES OFFSET PATH,PATH,... OUT WINDOW SECONDS FIRST
//
// Drives a switch through shared-memory ports as switch-load does through interfaces: sends the
// workers' frames with growing sequence numbers and counts what returns. Prints one line of JSON.
//
//   FRAMES   file: for every input one frame, each behind its length (32 bits, big endian)
//   OFFSET   where in a frame the 32-bit sequence number lies
//   PATH     sockets of the ports that the inputs are on; OUT: of the port where answers leave
//   WINDOW   sequence numbers under way at most
//   FIRST    the first of them
//
// rate: as many as the window allows; one frame returns for one sequence number of all inputs.
// ping: one frame of the first input at a time, and its round trip.
#include <arpa/inet.h>
#include <catchment_shm.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "frame_file.hpp"

namespace {

using catchment::bench::read_frames;

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 64;
constexpr int kAttachMs = 10'000;
constexpr std::int64_t kTimeoutUs = 100'000;
constexpr int kMostStalls = 50;

struct Detach {
  void operator()(catchment_shm* port) const { catchment_shm_detach(port); }
};
using Port = std::unique_ptr<catchment_shm, Detach>;

Port attach(const std::string& path) {
  std::array<char, 512> error{};
  Port port(catchment_shm_attach(path.c_str(), kAttachMs, nullptr, error.data(), error.size()));
  if (!port) {
    throw std::runtime_error(error.data());
  }
  return port;
}

int checked(const Port& port, int status) {
  if (status < 0 && status != CATCHMENT_SHM_TIMEOUT) {
    throw std::runtime_error(catchment_shm_error(port.get()));
  }
  return status;
}

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Load {
  std::vector<std::string> frames;
  std::size_t offset = 0;
  std::vector<Port> inputs;
  Port output;
  std::uint64_t window = 0;
  double seconds = 0;
  std::uint64_t first = 0;
};

class Generator {
 public:
  explicit Generator(Load& load) : load_(load) {
    catchment_shm_info info{};
    catchment_shm_get_info(load.output.get(), &info);
    buffer_.resize(kBatch * info.frame_bytes);
    for (std::size_t i = 0; i < kBatch; ++i) {
      in_[i] = {&buffer_[i * info.frame_bytes], 0, info.frame_bytes};
    }
  }

  /// Frames `first`, ... of one input, in place; how many there was room for.
  std::uint64_t send(std::size_t input, std::uint64_t first, std::uint64_t count) {
    const Port& port = load_.inputs[input];
    const std::string& frame = load_.frames[input];
    std::uint64_t sent = 0;
    for (; sent < count; ++sent) {
      auto* const room = static_cast<char*>(catchment_shm_reserve(port.get()));
      if (room == nullptr) {
        break;
      }
      std::memcpy(room, frame.data(), frame.size());
      const std::uint32_t seq = htonl(static_cast<std::uint32_t>(first + sent));
      std::memcpy(room + load_.offset, &seq, sizeof seq);
      checked(port, catchment_shm_commit(port.get(), static_cast<std::uint32_t>(frame.size())));
    }
    checked(port, catchment_shm_flush(port.get()));
    return sent;
  }
  /// How many frames returned.
  std::uint64_t receive() {
    return static_cast<std::uint64_t>(
        checked(load_.output, catchment_shm_receive(load_.output.get(), in_.data(), kBatch)));
  }
  bool wait() {
    return checked(load_.output,
                   catchment_shm_wait(load_.output.get(), CATCHMENT_SHM_FRAMES, kTimeoutUs)) > 0;
  }

 private:
  Load& load_;
  std::vector<char> buffer_;
  std::array<catchment_shm_frame, kBatch> in_{};
};

int rate(Load& load) {
  Generator generator(load);
  const std::size_t inputs = load.inputs.size();
  std::vector<std::uint64_t> next(inputs, load.first);
  std::uint64_t returned = load.first;
  std::uint64_t got_in_all = 0;
  int stalls = 0;
  const double start = seconds_of(CLOCK_MONOTONIC);
  double now = start;
  while (now - start < load.seconds) {
    bool moved = false;
    for (std::size_t input = 0; input < inputs; ++input) {
      const std::uint64_t room =
          std::min<std::uint64_t>(returned + load.window - next[input], kBatch / 2);
      if (room >= kBatch / 4) {
        const std::uint64_t sent = generator.send(input, next[input], room);
        next[input] += sent;
        moved |= sent != 0;
      }
    }
    while (const std::uint64_t got = generator.receive()) {
      returned += got;
      got_in_all += got;
      moved = true;
    }
    if (!moved && !generator.wait()) {
      if (++stalls > kMostStalls) {
        throw std::runtime_error("nothing returns any more, after " + std::to_string(got_in_all) +
                                 " frames");
      }
      std::fill(next.begin(), next.end(), returned);  // the same sequence numbers again
    }
    now = seconds_of(CLOCK_MONOTONIC);
  }
  std::printf(
      "{\"frames\": %llu, \"returned\": %llu, \"seconds\": %.6f, \"used\": %.6f, \"stalls\": %d}\n",
      static_cast<unsigned long long>(got_in_all * inputs),
      static_cast<unsigned long long>(got_in_all), now - start,
      seconds_of(CLOCK_PROCESS_CPUTIME_ID), stalls);
  return 0;
}

int ping(Load& load) {
  Generator generator(load);
  std::vector<double> trips;
  const double start = seconds_of(CLOCK_MONOTONIC);
  for (std::uint64_t seq = load.first; seconds_of(CLOCK_MONOTONIC) - start < load.seconds; ++seq) {
    const auto before = Clock::now();
    generator.send(0, seq, 1);
    std::uint64_t got = 0;
    while ((got = generator.receive()) == 0) {
      if (!generator.wait()) {
        throw std::runtime_error("frame " + std::to_string(seq) + " does not return");
      }
    }
    trips.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  std::sort(trips.begin(), trips.end());
  std::printf("{\"median\": %.9f, \"p99\": %.9f, \"trips\": %zu}\n", trips[trips.size() / 2],
              trips[trips.size() * 99 / 100], trips.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string kind;
  std::string frames;
  std::string paths;
  std::string sink;
  Load load;
  CLI::App app("Sends frames through a switch's shared memory and measures what returns.",
               "shm-load");
  app.add_option("kind", kind)->required()->check(CLI::IsMember({"rate", "ping"}));
  app.add_option("frames", frames, "file of frames, one for each input")->required();
  app.add_option("offset", load.offset, "bytes before the sequence number")->required();
  app.add_option("inputs", paths, "ports' paths, with commas between them")->required();
  app.add_option("output", sink, "path of the port where frames return")->required();
  app.add_option("window", load.window, "frames under way")->required();
  app.add_option("seconds", load.seconds)->required();
  app.add_option("first", load.first, "the first sequence number")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    load.frames = read_frames(frames);
    for (std::size_t at = 0; at < paths.size();) {
      const std::size_t comma = std::min(paths.find(',', at), paths.size());
      load.inputs.push_back(attach(paths.substr(at, comma - at)));
      at = comma + 1;
    }
    load.output = attach(sink);
    if (load.inputs.size() > load.frames.size()) {
      throw std::runtime_error("fewer frames than inputs");
    }
    return kind == "ping" ? ping(load) : rate(load);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shm-load: %s\n", error.what());
    return 1;
  }
}
