#include "fuzz.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

namespace catchment::softswitch {
namespace {

constexpr std::size_t kMaxFrame = 9728;
constexpr std::uint32_t kAllPorts = 512;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : dice_(seed) {}

  std::uint64_t below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(dice_);
  }

  std::string random(std::size_t most) {
    std::string bytes(below(most), '\0');
    std::ranges::generate(bytes, [this] { return static_cast<char>(below(256)); });
    return bytes;
  }

  /// Bits flipped, bytes replaced, cut, repeated or lengthened; now and then left as it is.
  std::string mutate(std::string frame) {
    static constexpr unsigned char kEdges[] = {0, 1, 0x7F, 0x80, 0xFF};
    for (std::uint64_t rounds = below(4); rounds > 0; --rounds) {
      const std::size_t at = frame.empty() ? 0 : below(frame.size());
      switch (below(5)) {
        case 0:
          if (!frame.empty()) {
            frame[at] = static_cast<char>(frame[at] ^ (1 << below(8)));
          }
          break;
        case 1:
          if (!frame.empty()) {
            frame[at] = static_cast<char>(kEdges[below(5)]);
          }
          break;
        case 2:
          frame.resize(at);
          break;
        case 3:
          frame.insert(at, random(64));
          break;
        default:
          frame.append(1 + below(below(50) == 0 ? 9000 : 200), '\0');
      }
    }
    frame.resize(std::min(frame.size(), kMaxFrame));
    return frame;
  }

 private:
  std::mt19937_64 dice_;
};

std::uint64_t dropped(const PortStatistics& s) {
  std::uint64_t sum = 0;
  for (const std::uint64_t drops : s.drops) {
    sum += drops;
  }
  return sum;
}

[[noreturn]] void fail(const char* what, std::uint64_t number, std::uint32_t port,
                       const std::string& frame) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = std::string(what) + ": frame " + std::to_string(number) + " by port " +
                     std::to_string(port) + ": ";
  for (const char byte : frame) {
    text.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
    text.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
  }
  throw std::runtime_error(text);
}

PortStatistics all_ports(const Dataplane& dataplane) {
  PortStatistics sum;
  for (std::uint32_t port = 0; port < kAllPorts; ++port) {
    const PortStatistics one = dataplane.statistics(port);
    sum.rx_packets += one.rx_packets;
    sum.tx_packets += one.tx_packets;
    for (std::size_t i = 0; i < kDropCauses; ++i) {
      sum.drops[i] += one.drops[i];
    }
  }
  return sum;
}

}  // namespace

FuzzReport fuzz(Dataplane& dataplane,
                const std::vector<std::pair<std::uint32_t, std::string>>& seeds,
                std::uint64_t count, std::uint32_t ports, std::uint64_t seed) {
  Mutator mutator(seed);
  FuzzReport report;
  const PortStatistics begin = all_ports(dataplane);
  for (std::uint64_t number = 0; number < count; ++number) {
    std::uint32_t port = static_cast<std::uint32_t>(mutator.below(ports));
    std::string frame;
    if (seeds.empty() || mutator.below(10) == 0) {
      frame = mutator.random(400);
    } else {
      const auto& [usual, good] = seeds[mutator.below(seeds.size())];
      frame = mutator.mutate(good);
      port = mutator.below(4) == 0 ? port : usual;
    }
    const PortStatistics before = dataplane.statistics(port);
    auto result = dataplane.inject(port, frame);
    const PortStatistics after = dataplane.statistics(port);
    if (!result.ok()) {
      fail(result.status().message().c_str(), number, port, frame);
    }
    if (after.rx_packets != before.rx_packets + 1 ||
        after.rx_bytes != before.rx_bytes + frame.size()) {
      fail("not counted as received", number, port, frame);
    }
    if (result.value().empty() && dropped(after) == dropped(before)) {
      fail("lost without a trace", number, port, frame);
    }
    report.in += 1;
    report.out += result.value().size();
  }
  const PortStatistics end = all_ports(dataplane);
  for (std::size_t i = 0; i < kDropCauses; ++i) {
    report.drops[i] = end.drops[i] - begin.drops[i];
  }
  if (end.rx_packets - begin.rx_packets != report.in ||
      end.tx_packets - begin.tx_packets != report.out) {
    throw std::runtime_error("the ports' counters and what was injected do not add up");
  }
  return report;
}

}  // namespace catchment::softswitch
