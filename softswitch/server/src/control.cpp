#include "control.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "batch_status.hpp"
#include "entity_messages.hpp"
#include "entity_reader.hpp"
#include "entity_writer.hpp"
#include "packet_codec.hpp"
#include "rollback.hpp"
#include "rpc_error.hpp"
#include "unknown_fields.hpp"

namespace catchment::server {

namespace {

// Throws RpcError unless the update may be tried.
void check_update(const p4::v1::Update& update, const Permission& permission,
                  const WatchPorts& ports) {
  refuse_unknown_fields(update);
  permission.check(update.entity());
  ports.check(update);
}

BatchStatus write_each(const p4::v1::WriteRequest& request, const Permission& permission,
                       const WatchPorts& ports, Target& target) {
  BatchStatus status(static_cast<std::size_t>(request.updates_size()));
  for (int i = 0; i < request.updates_size(); ++i) {
    try {
      check_update(request.updates(i), permission, ports);
      write_entity(request.updates(i), target);
    } catch (const RpcError& error) {
      status.fail(static_cast<std::size_t>(i), error);
    }
  }
  return status;
}

BatchStatus write_whole_or_nothing(const p4::v1::WriteRequest& request,
                                   const Permission& permission, const WatchPorts& ports,
                                   Target& target) {
  BatchStatus status(static_cast<std::size_t>(request.updates_size()));
  Rollback rollback;
  for (int i = 0; i < request.updates_size(); ++i) {
    try {
      check_update(request.updates(i), permission, ports);
      rollback.write(request.updates(i), target);
    } catch (const RpcError& error) {
      rollback.undo(target);
      status.fail_whole(static_cast<std::size_t>(i), error);
      return status;
    }
  }
  return status;
}

BatchStatus write_all(const p4::v1::WriteRequest& request, const Permission& permission,
                      const WatchPorts& ports, Target& target) {
  switch (request.atomicity()) {
    case p4::v1::WriteRequest::CONTINUE_ON_ERROR:
      return write_each(request, permission, ports, target);
    case p4::v1::WriteRequest::ROLLBACK_ON_ERROR:
      return write_whole_or_nothing(request, permission, ports, target);
    case p4::v1::WriteRequest::DATAPLANE_ATOMIC: {
      const softswitch::Dataplane::Pause pause(target.dataplane());
      return write_whole_or_nothing(request, permission, ports, target);
    }
    default:
      throw unimplemented("atomicity " + std::to_string(request.atomicity()) +
                          ": CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR or DATAPLANE_ATOMIC");
  }
}

grpc::Status read_all(const p4::v1::ReadRequest& request, const Target& target,
                      UnsentMessages& messages, std::size_t max_status_bytes) {
  EntityMessages sink(messages);
  BatchStatus status(static_cast<std::size_t>(request.entities_size()));
  for (int i = 0; i < request.entities_size(); ++i) {
    try {
      refuse_unknown_fields(request.entities(i));
      read_entity(request.entities(i), target, sink);
    } catch (const RpcError& error) {
      if (messages.overflowed()) {
        throw;
      }
      status.fail(static_cast<std::size_t>(i), error);
    }
  }
  sink.finish();
  return status.status("read requests", max_status_bytes);
}

}  // namespace

template <class Request>
Permission Control::require_primary(const Request& request) {
  if (request.role_id() != 0) {
    throw not_found("role_id is not supported (deprecated since P4Runtime 1.4): use role");
  }
  return arbiter_.require_primary(request.role(),
                                  request.has_election_id() ? &request.election_id() : nullptr);
}

template <class Request>
void Control::check_writer(const Request& request) {
  check_device(request.device_id());
  require_primary(request);
}

template void Control::check_writer(const p4::v1::WriteRequest&);
template void Control::check_writer(const p4::v1::SetForwardingPipelineConfigRequest&);

Control::Control(ControlOptions options, const Log& log, softswitch::Dataplane& dataplane,
                 ProgramStore& programs, std::function<bool(std::string)> packet_out)
    : options_(std::move(options)),
      watch_ports_(options_.ports),
      log_(log),
      packet_out_(std::move(packet_out)),
      arbiter_(options_.device_id, state_),
      pipelines_(dataplane, programs),
      notifier_(dataplane, arbiter_) {}

void Control::start_with(const p4::v1::ForwardingPipelineConfig& config) {
  const auto lock = state_.exclusive();
  pipelines_.commit(config);
  use_running();
}

void Control::use_running() {
  const auto running = pipelines_.running();
  if (running != nullptr && running != used_) {
    used_ = running;
    notifier_.use(running->shared_schema());
    notifier_.configure(running->digests);
  }
}

void Control::apply_digests(const google::protobuf::RepeatedPtrField<p4::v1::Update>& updates) {
  const auto is_digest = [](const auto& update) { return update.entity().has_digest_entry(); };
  if (std::any_of(updates.begin(), updates.end(), is_digest) && pipelines_.running() != nullptr) {
    notifier_.configure(pipelines_.running()->digests);
  }
}

void Control::check_device(std::uint64_t device_id) const {
  if (device_id != options_.device_id) {
    throw not_found("device_id " + std::to_string(device_id) +
                    " is not served here; this switch is device_id " +
                    std::to_string(options_.device_id));
  }
}

grpc::Status Control::write(const p4::v1::WriteRequest& request) {
  check_device(request.device_id());
  refuse_own_unknown_fields(request);
  const auto lock = state_.exclusive();
  const Permission permission = require_primary(request);
  const BatchStatus status = write_all(request, permission, watch_ports_, pipelines_.target());
  apply_digests(request.updates());
  grpc::Status result = status.status("updates", options_.max_status_bytes);
  if (!result.ok()) {
    log_.debug("write: " + result.error_message());
  }
  return result;
}

grpc::Status Control::read(const p4::v1::ReadRequest& request, UnsentMessages& messages) {
  check_device(request.device_id());
  refuse_own_unknown_fields(request);
  const auto lock = state_.shared();
  return read_all(request, pipelines_.target(), messages, options_.max_status_bytes);
}

void Control::set_pipeline(const p4::v1::SetForwardingPipelineConfigRequest& request) {
  check_device(request.device_id());
  refuse_unknown_fields(request);
  const auto lock = state_.exclusive();
  require_primary(request).check_pipeline();
  pipelines_.set(request);
  use_running();
  log_.info("pipeline: " +
            p4::v1::SetForwardingPipelineConfigRequest::Action_Name(request.action()));
}

void Control::get_pipeline(const p4::v1::GetForwardingPipelineConfigRequest& request,
                           p4::v1::GetForwardingPipelineConfigResponse& response) {
  using Request = p4::v1::GetForwardingPipelineConfigRequest;
  check_device(request.device_id());
  refuse_unknown_fields(request);
  const auto type = request.response_type();
  if (!Request::ResponseType_IsValid(type)) {
    throw invalid_argument(
        "response_type: there is no type " + std::to_string(type) +
        "; ask for ALL, COOKIE_ONLY, P4INFO_AND_COOKIE or DEVICE_CONFIG_AND_COOKIE");
  }
  const auto lock = state_.shared();
  const auto* config = pipelines_.config();
  if (config == nullptr) {
    return;  // no config: left unset in the response
  }
  auto& result = *response.mutable_config();
  if (config->has_cookie()) {
    *result.mutable_cookie() = config->cookie();
  }
  if (type == Request::ALL || type == Request::P4INFO_AND_COOKIE) {
    *result.mutable_p4info() = config->p4info();
  }
  if (type == Request::ALL || type == Request::DEVICE_CONFIG_AND_COOKIE) {
    result.set_p4_device_config(config->p4_device_config());
  }
}

void Control::ended(const std::shared_ptr<Session>& session) { arbiter_.remove(*session); }

void Control::handle(const std::shared_ptr<Session>& session,
                     const p4::v1::StreamMessageRequest& request) {
  switch (request.update_case()) {
    case p4::v1::StreamMessageRequest::kArbitration:
      refuse_unknown_fields(request.arbitration());
      arbiter_.update(session, request.arbitration());
      if (arbiter_.is_primary(*session)) {
        log_.info("primary: " + session->peer());
      }
      return;
    case p4::v1::StreamMessageRequest::kPacket:
      return send_packet(session, request.packet());
    case p4::v1::StreamMessageRequest::kDigestAck:
      return acknowledge(session, request.digest_ack());
    default: {
      p4::v1::StreamMessageResponse response;
      auto& error = *response.mutable_error();
      error.set_canonical_code(grpc::StatusCode::INVALID_ARGUMENT);
      error.set_message("the stream message is none that this switch knows");
      *error.mutable_other()->mutable_other() = request.other();
      session->offer(std::move(response));
    }
  }
}

void Control::acknowledge(const std::shared_ptr<Session>& session,
                          const p4::v1::DigestListAck& ack) {
  try {
    refuse_unknown_fields(ack);
    if (!arbiter_.is_primary(*session)) {
      throw permission_denied("only the primary may acknowledge digests");
    }
    const auto lock = state_.shared();
    const auto running = pipelines_.running();
    if (running == nullptr ||
        std::ranges::none_of(running->schema().info().digests(), [&](const auto& digest) {
          return digest.preamble().id() == ack.digest_id();
        })) {
      throw invalid_argument("there is no digest with id " + std::to_string(ack.digest_id()) +
                             " in the P4Info of the pipeline");
    }
    notifier_.acknowledge(ack);
  } catch (const RpcError& error) {
    p4::v1::StreamMessageResponse response;
    auto& message = *response.mutable_error();
    message.set_canonical_code(error.code());
    message.set_message(error.what());
    *message.mutable_digest_list_ack()->mutable_digest_list_ack() = ack;
    session->offer(std::move(response));
  }
}

void Control::send_packet(const std::shared_ptr<Session>& session,
                          const p4::v1::PacketOut& packet) {
  try {
    refuse_unknown_fields(packet);
    if (!arbiter_.is_primary(*session)) {
      throw permission_denied("only the primary may send packets");
    }
    std::string frame;
    {
      const auto lock = state_.shared();
      const auto running = pipelines_.running();
      if (running == nullptr) {
        throw failed_precondition("there is no forwarding pipeline to send the packet through");
      }
      frame = decode_packet_out(packet, running->schema());
    }
    if (!packet_out_(std::move(frame))) {
      throw RpcError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                     "too many packet-outs wait for the packets before them; send it again later");
    }
  } catch (const RpcError& error) {
    p4::v1::StreamMessageResponse response;
    auto& message = *response.mutable_error();
    message.set_canonical_code(error.code());
    message.set_message(error.what());
    *message.mutable_packet_out()->mutable_packet_out() = packet;
    session->offer(std::move(response));
  }
}

}  // namespace catchment::server
