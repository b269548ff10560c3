#include "digest_buffers.hpp"

#include <algorithm>
#include <utility>

namespace catchment::server {

namespace {

// A stream holds 1 MiB that its client has not taken yet, and clients take messages of 4 MB.
constexpr std::size_t kListBytes = 256 << 10;
constexpr std::size_t kSentBytes = 1 << 20;  // of a digest's lists that nobody has acknowledged
constexpr std::size_t kScalarBytes = 16;     // of a scalar in a message, beside its value

std::size_t bytes_of(const DigestMembers& members) {
  std::size_t bytes = 0;
  for (const auto& scalar : members) {
    bytes += scalar.size() + kScalarBytes;
  }
  return bytes;
}

}  // namespace

void DigestBuffers::configure(const Configs& configs) {
  std::erase_if(buffers_, [&](const auto& buffer) { return !configs.contains(buffer.first); });
  for (const auto& [id, config] : configs) {
    buffers_[id].config = config;
  }
}

DigestBuffers::Clock::time_point DigestBuffers::due(const Buffer& buffer) {
  const auto most = static_cast<std::size_t>(buffer.config.max_list_size());
  if ((most != 0 && buffer.waiting.size() >= most) || buffer.waiting_bytes >= kListBytes) {
    return buffer.first;
  }
  const std::chrono::nanoseconds longest = Clock::time_point::max() - buffer.first;
  return buffer.first + std::min(std::chrono::nanoseconds(buffer.config.max_timeout_ns()), longest);
}

void DigestBuffers::forget(Buffer& buffer, Lists::iterator list) {
  for (const auto& message : list->second.messages) {
    buffer.known.erase(message);
  }
  buffer.sent_bytes -= list->second.bytes;
  buffer.sent.erase(list);
}

void DigestBuffers::expire(Buffer& buffer, Clock::time_point now) {
  const std::chrono::nanoseconds timeout(buffer.config.ack_timeout_ns());
  while (!buffer.sent.empty() && now - buffer.sent.begin()->second.when >= timeout) {
    forget(buffer, buffer.sent.begin());
  }
}

void DigestBuffers::add(std::uint32_t digest_id, DigestMembers members, std::int64_t timestamp_ns,
                        Clock::time_point now) {
  const auto found = buffers_.find(digest_id);
  if (found == buffers_.end()) {
    return;
  }
  Buffer& buffer = found->second;
  expire(buffer, now);
  if (!buffer.known.insert(members).second) {
    return;
  }
  if (buffer.waiting.empty()) {
    buffer.first = now;
  }
  buffer.last_timestamp_ns = timestamp_ns;
  buffer.waiting_bytes += bytes_of(members);
  buffer.waiting.push_back(std::move(members));
}

std::vector<DigestBatch> DigestBuffers::take_due(Clock::time_point now) {
  std::vector<DigestBatch> result;
  for (auto& [id, buffer] : buffers_) {
    if (buffer.waiting.empty() || due(buffer) > now) {
      continue;
    }
    DigestBatch batch{id, next_list_id_++, std::move(buffer.waiting), buffer.last_timestamp_ns};
    buffer.waiting.clear();
    if (buffer.config.ack_timeout_ns() > 0) {
      buffer.sent.emplace(batch.list_id, Sent{now, batch.messages, buffer.waiting_bytes});
      buffer.sent_bytes += buffer.waiting_bytes;
      while (buffer.sent_bytes > kSentBytes) {
        forget(buffer, buffer.sent.begin());
      }
    } else {
      buffer.known.clear();
    }
    buffer.waiting_bytes = 0;
    result.push_back(std::move(batch));
  }
  return result;
}

std::optional<DigestBuffers::Clock::time_point> DigestBuffers::next_due() const {
  std::optional<Clock::time_point> earliest;
  for (const auto& [id, buffer] : buffers_) {
    if (!buffer.waiting.empty() && (!earliest || due(buffer) < *earliest)) {
      earliest = due(buffer);
    }
  }
  return earliest;
}

bool DigestBuffers::acknowledge(std::uint32_t digest_id, std::uint64_t list_id) {
  const auto buffer = buffers_.find(digest_id);
  if (buffer == buffers_.end()) {
    return false;
  }
  const auto list = buffer->second.sent.find(list_id);
  if (list == buffer->second.sent.end()) {
    return false;
  }
  forget(buffer->second, list);
  return true;
}

void DigestBuffers::clear() {
  for (auto& [id, buffer] : buffers_) {
    buffer.waiting.clear();
    buffer.waiting_bytes = 0;
    buffer.sent.clear();
    buffer.sent_bytes = 0;
    buffer.known.clear();
  }
}

}  // namespace catchment::server
