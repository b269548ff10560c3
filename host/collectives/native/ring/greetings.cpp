#include "greetings.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace catchment::host::ring {
namespace {

constexpr std::uint32_t kMagic = 0x72696e67;

}  // namespace

std::array<std::uint8_t, Greeting::kBytes> Greeting::bytes() const {
  const std::array<std::uint32_t, 6> words{kMagic, gen, rank, ranks, slots, lanes};
  std::array<std::uint8_t, kBytes> result{};
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::uint32_t word = htonl(words[at]);
    std::memcpy(&result[at * sizeof word], &word, sizeof word);
  }
  return result;
}

void Greetings::add(PrivateSocket connection) {
  if (coming_.size() == kMost) coming_.pop_front();
  coming_.push_back({std::move(connection)});
}

PrivateSocket Greetings::take() {
  for (auto coming = coming_.begin(); coming != coming_.end();) {
    const Said said = listen(*coming);
    if (said == Said::kPart) {
      ++coming;
      continue;
    }
    PrivateSocket connection = std::move(coming->connection);
    coming = coming_.erase(coming);
    if (said == Said::kAll) return connection;
    if (said == Said::kWrong) ++refused_;
  }
  return {};
}

Greetings::Said Greetings::listen(Coming& coming) const {
  std::array<std::uint8_t, Greeting::kBytes> bytes{};
  const ssize_t size = recv(coming.connection.get(), bytes.data(), bytes.size() - coming.heard, 0);
  if (size == 0) return Said::kClosed;
  if (size < 0) {
    return is_passing(errno) ? Said::kPart : Said::kClosed;
  }
  const auto* expected = expected_.begin() + coming.heard;
  if (!std::equal(bytes.begin(), bytes.begin() + size, expected)) return Said::kWrong;
  coming.heard += static_cast<std::size_t>(size);
  return coming.heard == expected_.size() ? Said::kAll : Said::kPart;
}

}  // namespace catchment::host::ring
