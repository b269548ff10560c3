#include "notifier.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "data_codec.hpp"
#include "packet_codec.hpp"
#include "rpc_error.hpp"
#include "table_codec.hpp"

namespace catchment::server {

namespace {

constexpr std::size_t kMaxQueued = 8192;

void add_idle(const softswitch::IdleNotification& idle, const Schema& schema,
              std::deque<p4::v1::StreamMessageResponse>& messages) {
  // Entries that fell idle in one scan go into one message.
  if (messages.empty() || !messages.back().has_idle_timeout_notification() ||
      messages.back().idle_timeout_notification().timestamp() != idle.timestamp_ns) {
    messages.emplace_back().mutable_idle_timeout_notification()->set_timestamp(idle.timestamp_ns);
  }
  auto& entry = *messages.back().mutable_idle_timeout_notification()->add_table_entry();
  encode_key(idle.entry, schema.table(idle.entry.table_id), entry);
  entry.set_controller_metadata(idle.entry.controller_metadata);
  entry.set_metadata(idle.entry.metadata);
  entry.set_idle_timeout_ns(idle.entry.idle_timeout_ns);
}

// A P4Info may leave tables out; clients of such a pipeline do not know them.
bool knows_table(const Schema& schema, std::uint32_t id) {
  return std::any_of(schema.info().tables().begin(), schema.info().tables().end(),
                     [id](const auto& table) { return table.preamble().id() == id; });
}

p4::v1::StreamMessageResponse digest_list(const DigestBatch& batch, const Schema& schema) {
  const auto& info = schema.digest(batch.digest_id);
  p4::v1::StreamMessageResponse message;
  auto& list = *message.mutable_digest();
  list.set_digest_id(batch.digest_id);
  list.set_list_id(batch.list_id);
  list.set_timestamp(batch.timestamp_ns);
  for (const DigestMembers& members : batch.messages) {
    std::span<const std::string> scalars(members);
    *list.add_data() = encode_data(scalars, info.type_spec(), schema.info().type_info());
  }
  return message;
}

}  // namespace

Notifier::Notifier(softswitch::Dataplane& dataplane, Arbiter& arbiter)
    : dataplane_(dataplane), arbiter_(arbiter), thread_([this] { run(); }) {
  dataplane_.on_packet_in([this](softswitch::PacketIn&& packet) { queue(std::move(packet)); });
  dataplane_.on_digest([this](softswitch::DigestMessage&& digest) { queue(std::move(digest)); });
  dataplane_.on_idle_timeout(
      [this](softswitch::IdleNotification&& idle) { queue(std::move(idle)); });
}

Notifier::~Notifier() {
  dataplane_.on_packet_in(nullptr);
  dataplane_.on_digest(nullptr);
  dataplane_.on_idle_timeout(nullptr);
  {
    const std::lock_guard lock(queue_mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void Notifier::use(std::shared_ptr<const Schema> schema) {
  const std::lock_guard state_lock(state_mutex_);
  schema_ = std::move(schema);
  digests_.clear();
  const std::lock_guard lock(queue_mutex_);
  events_.clear();
}

void Notifier::configure(const DigestBuffers::Configs& configs) {
  const std::lock_guard state_lock(state_mutex_);
  digests_.configure(configs);
  const std::lock_guard lock(queue_mutex_);
  configured_ = true;
  changed_.notify_one();
}

void Notifier::acknowledge(const p4::v1::DigestListAck& ack) { queue(ack); }

std::uint64_t Notifier::dropped() const {
  const std::lock_guard lock(queue_mutex_);
  return dropped_;
}

void Notifier::count_dropped() {
  const std::lock_guard lock(queue_mutex_);
  ++dropped_;
}

void Notifier::queue(Event event) {
  const std::lock_guard lock(queue_mutex_);
  if (events_.size() >= kMaxQueued) {
    ++dropped_;
    return;
  }
  events_.push_back(std::move(event));
  changed_.notify_one();
}

Notifier::Messages Notifier::collect(const Events& events) {
  Messages messages;
  if (schema_ == nullptr) {
    return messages;
  }
  for (const Event& event : events) {
    if (const auto* packet = std::get_if<softswitch::PacketIn>(&event)) {
      *messages.emplace_back().mutable_packet() = encode_packet_in(packet->payload, *schema_);
    } else if (const auto* idle = std::get_if<softswitch::IdleNotification>(&event)) {
      if (knows_table(*schema_, idle->entry.table_id)) {
        add_idle(*idle, *schema_, messages);
      }
    } else if (const auto* ack = std::get_if<p4::v1::DigestListAck>(&event)) {
      digests_.acknowledge(ack->digest_id(), ack->list_id());
    } else {
      const auto& digest = std::get<softswitch::DigestMessage>(event);
      digests_.add(digest.digest_id, digest.members, digest.timestamp_ns,
                   DigestBuffers::Clock::now());
      collect_digests(messages);
    }
  }
  collect_digests(messages);
  return messages;
}

void Notifier::collect_digests(Messages& messages) {
  for (const auto& batch : digests_.take_due(DigestBuffers::Clock::now())) {
    try {
      messages.push_back(digest_list(batch, *schema_));
    } catch (const RpcError&) {
      count_dropped();  // of a type that P4Runtime cannot carry
    }
  }
}

void Notifier::run() {
  std::optional<DigestBuffers::Clock::time_point> due;
  while (true) {
    Events events;
    {
      std::unique_lock lock(queue_mutex_);
      const auto ready = [this] { return ending_ || configured_ || !events_.empty(); };
      if (due) {
        changed_.wait_until(lock, *due, ready);
      } else {
        changed_.wait(lock, ready);
      }
      if (ending_) {
        return;
      }
      configured_ = false;
      events.swap(events_);
    }
    Messages messages;
    {
      const std::lock_guard lock(state_mutex_);
      messages = collect(events);
      due = digests_.next_due();
    }
    const auto receivers = arbiter_.packet_receivers();
    for (const auto& message : messages) {
      for (const auto& session : receivers) {
        session->offer(message);
      }
    }
  }
}

}  // namespace catchment::server
