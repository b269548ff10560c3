// switch-load rate|ping|drain FRAMES OFFSET IN,IN,... OUT WINDOW SECONDS RETURNS [PID]
//
// Drives a switch through interfaces: sends the workers' frames with growing sequence numbers and
// counts what returns. Prints one line of JSON.
//
//   FRAMES   file: for every input one frame, each behind its length (32 bits, big endian)
//   OFFSET   where in a frame the 32-bit sequence number lies
//   WINDOW   sequence numbers under way at most
//   RETURNS  frames that come back for one sequence number of all inputs
//
// rate: as many as the window allows. drain: the same, but the switch (PID) is stopped while a
// whole window is sent, so that it always has enough to do. ping: one frame of the first input at a
// time, and its round trip. A sequence number that does not return in 100 ms is sent again.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>

#include "frame_file.hpp"
#include "packet_io.hpp"

namespace {

using namespace catchment::bench;

constexpr double kTimeout = 0.1;
constexpr int kMostStalls = 50;

struct Load {
  std::vector<std::string> frames;
  std::size_t offset = 0;
  std::vector<RawSocket> inputs;
  std::optional<RawSocket> output;
  std::uint64_t window = 0;
  double seconds = 0;
  std::uint64_t returns = 0;
  pid_t pid = 0;  // drain: of the switch
};

class Generator {
 public:
  explicit Generator(Load& load) : load_(load), batches_(load.inputs.size()) {
    for (std::size_t input = 0; input < batches_.size(); ++input) {
      for (std::size_t i = 0; i < kBatch; ++i) {
        const std::string& frame = load.frames[input];
        std::memcpy(batches_[input].data(i), frame.data(), frame.size());
        batches_[input].set_length(i, frame.size());
      }
    }
  }

  void send(std::uint64_t first, std::size_t count, std::size_t inputs) {
    for (std::size_t input = 0; input < inputs; ++input) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t seq = htonl(static_cast<std::uint32_t>(first + i));
        std::memcpy(batches_[input].data(i) + load_.offset, &seq, sizeof seq);
      }
      batches_[input].send(load_.inputs[input].fd(), count);
    }
  }
  std::size_t receive() { return received_.receive(load_.output->fd()); }

 private:
  Load& load_;
  std::vector<Batch> batches_;
  Batch received_;
};

/// Newer than every one of a run before: the switch drops old ones.
std::uint64_t first_sequence_number() {
  return static_cast<std::uint64_t>(seconds(CLOCK_MONOTONIC) * 1e6);
}

int rate(Load& load) {
  Generator generator(load);
  const std::size_t burst = std::min<std::size_t>(kBatch, load.window / 4);
  const std::uint64_t first = first_sequence_number();
  std::uint64_t next = first;
  std::uint64_t returned = 0;
  int stalls = 0;
  const double start = seconds(CLOCK_MONOTONIC);
  double now = start;
  double progress = start;
  while (now - start < load.seconds) {
    if (const std::size_t got = generator.receive(); got > 0) {
      returned += got;
      progress = now;
    }
    const std::uint64_t done = first + returned / load.returns;
    if (next + burst <= done + load.window) {
      generator.send(next, burst, load.inputs.size());
      next += burst;
    } else if (now - progress > kTimeout) {
      if (++stalls > kMostStalls) {
        throw std::runtime_error("nothing returns any more, after " + std::to_string(returned) +
                                 " frames");
      }
      next = done;  // the same sequence numbers again
      returned = (done - first) * load.returns;
      progress = now;
    }
    now = seconds(CLOCK_MONOTONIC);
  }
  std::printf("{\"frames\": %llu, \"returned\": %llu, \"seconds\": %.6f, \"stalls\": %d}\n",
              static_cast<unsigned long long>(returned / load.returns * load.inputs.size()),
              static_cast<unsigned long long>(returned), now - start, stalls);
  return 0;
}

int drain(Load& load) {
  Generator generator(load);
  std::uint64_t next = first_sequence_number();
  std::uint64_t returned = 0;
  double draining = 0;
  int stalls = 0;
  const double end = seconds(CLOCK_MONOTONIC) + load.seconds;
  while (seconds(CLOCK_MONOTONIC) < end) {
    ::kill(load.pid, SIGSTOP);
    for (std::uint64_t sent = 0; sent < load.window; sent += kBatch, next += kBatch) {
      generator.send(next, std::min<std::size_t>(kBatch, load.window - sent), load.inputs.size());
    }
    const double start = seconds(CLOCK_MONOTONIC);
    ::kill(load.pid, SIGCONT);
    std::uint64_t got = 0;
    double progress = start;
    while (got < load.window * load.returns) {
      const double now = seconds(CLOCK_MONOTONIC);
      if (const std::size_t count = generator.receive(); count > 0) {
        got += count;
        progress = now;
      } else if (now - progress > kTimeout) {
        if (++stalls > kMostStalls) {
          throw std::runtime_error("nothing returns any more");
        }
        break;
      }
    }
    draining += seconds(CLOCK_MONOTONIC) - start;
    returned += got;
  }
  std::printf("{\"frames\": %llu, \"returned\": %llu, \"seconds\": %.6f, \"stalls\": %d}\n",
              static_cast<unsigned long long>(returned / load.returns * load.inputs.size()),
              static_cast<unsigned long long>(returned), draining, stalls);
  return 0;
}

int ping(Load& load) {
  Generator generator(load);
  std::vector<double> trips;
  std::uint64_t next = first_sequence_number();
  int stalls = 0;
  const double end = seconds(CLOCK_MONOTONIC) + load.seconds;
  while (seconds(CLOCK_MONOTONIC) < end) {
    const double sent = seconds(CLOCK_MONOTONIC);
    generator.send(next++, 1, 1);
    double now = sent;
    while (generator.receive() == 0 && now - sent < kTimeout) {
      now = seconds(CLOCK_MONOTONIC);
    }
    now = seconds(CLOCK_MONOTONIC);
    if (now - sent < kTimeout) {
      trips.push_back(now - sent);
    } else if (++stalls > kMostStalls) {
      throw std::runtime_error("nothing returns");
    }
  }
  std::ranges::sort(trips);
  const auto quantile = [&](double q) {
    return trips[static_cast<std::size_t>(q * static_cast<double>(trips.size() - 1))];
  };
  std::printf("{\"pings\": %zu, \"median\": %.9f, \"p99\": %.9f, \"stalls\": %d}\n", trips.size(),
              quantile(0.5), quantile(0.99), stalls);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string kind;
  std::string frames;
  std::string sources;
  std::string sink;
  Load load;
  CLI::App app("Sends frames through a switch and measures what returns.", "switch-load");
  app.add_option("kind", kind)->required()->check(CLI::IsMember({"rate", "ping", "drain"}));
  app.add_option("frames", frames, "file of frames, one for each input")->required();
  app.add_option("offset", load.offset, "bytes before the sequence number")->required();
  app.add_option("inputs", sources, "interfaces, with commas between them")->required();
  app.add_option("output", sink, "interface where frames return")->required();
  app.add_option("window", load.window, "frames under way")->required();
  app.add_option("seconds", load.seconds)->required();
  app.add_option("returns", load.returns, "frames sent for each that returns")->required();
  app.add_option("pid", load.pid, "drain: the switch's process");
  try {
    app.parse(argc, argv);
    if ((kind == "drain") != (load.pid != 0)) {
      throw CLI::ValidationError("pid", "is given for drain, and for nothing else");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    for (const std::string& name : split(sources)) {
      load.inputs.emplace_back(name);
    }
    load.frames = read_frames(frames);
    load.output.emplace(sink);
    if (load.frames.size() != load.inputs.size() || load.window < 4 || load.returns == 0) {
      throw std::runtime_error("one frame for each input, a window of 4 and one return are needed");
    }
    return kind == "ping" ? ping(load) : kind == "rate" ? rate(load) : drain(load);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "switch-load: %s\n", error.what());
    return 1;
  }
}
