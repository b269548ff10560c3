#include "service.hpp"

#include <algorithm>
#include <utility>

#include "counted_call.hpp"
#include "read_call.hpp"
#include "rpc_error.hpp"

namespace catchment::server {

namespace {

constexpr char kApiVersion[] = "1.4.1";
constexpr char kNameProperty[] = "x509_common_name";
constexpr std::size_t kReadThreads = 2;
constexpr std::size_t kMaxMuteStreams = 1024;

RpcError too_much(const std::string& what) { return {grpc::StatusCode::RESOURCE_EXHAUSTED, what}; }

// Runs the body of a call; what it throws becomes the call's status.
template <class Body>
grpc::Status answer(Body body) {
  try {
    return body();
  } catch (const RpcError& error) {
    return error.status();
  } catch (const std::exception& error) {
    return {grpc::StatusCode::INTERNAL, error.what()};
  }
}

template <class Request>
grpc::Status parse(grpc::ByteBuffer message, Request& request) {
  return grpc::SerializationTraits<Request>::Deserialize(&message, &request);
}

}  // namespace

Service::Service(ServiceOptions options, const Log& log, Control& control, Connections& connections)
    : options_(std::move(options)),
      log_(log),
      control_(control),
      connections_(connections),
      writes_({.threads = 1}),
      reads_({.threads = kReadThreads}),
      streams_({.threads = 1}) {
  SetMessageAllocatorFor_Write(&write_messages_);
  SetMessageAllocatorFor_SetForwardingPipelineConfig(&pipeline_messages_);
  SetMessageAllocatorFor_Capabilities(&capability_messages_);
}

void Service::check_name(const grpc::CallbackServerContext& context) const {
  if (options_.client_names.empty()) {
    return;
  }
  const auto names = context.auth_context()->FindPropertyValues(kNameProperty);
  const bool known = std::any_of(names.begin(), names.end(), [&](const grpc::string_ref& name) {
    return std::find(options_.client_names.begin(), options_.client_names.end(),
                     std::string(name.data(), name.size())) != options_.client_names.end();
  });
  if (!known) {
    const std::string name = names.empty() ? "" : std::string(names[0].data(), names[0].size());
    log_.info("refused: " + context.peer() + " with the certificate of '" + name + "'");
    throw permission_denied("the certificate of '" + name +
                            "' is not one of those that may control this switch "
                            "(--tls-client-name)");
  }
}

// `check` refuses at once what need not wait; `body` runs on a thread of the queue.
template <class Check, class Body>
grpc::ServerUnaryReactor* Service::unary(grpc::CallbackServerContext& context, WorkQueue& queue,
                                         std::size_t bytes, Check check, Body body) {
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  const auto finish = [reactor, &context](const grpc::Status& status) {
    context.GetRpcAllocatorState()->FreeRequest();
    reactor->Finish(status);
  };
  connections_.received(context.peer(), bytes);
  const grpc::Status refusal = answer([&] {
    check_name(context);
    check();
    if (!queue.submit(context.peer(), bytes, [=] { finish(answer(body)); })) {
      throw too_much("too many requests of this client wait: send the next when one is answered");
    }
    return grpc::Status::OK;
  });
  if (!refusal.ok()) {
    finish(refusal);
  }
  return reactor;
}

grpc::ServerUnaryReactor* Service::Write(grpc::CallbackServerContext* context,
                                         const p4::v1::WriteRequest* request,
                                         p4::v1::WriteResponse*) {
  return unary(
      *context, writes_, request->ByteSizeLong(), [=, this] { control_.check_writer(*request); },
      [=, this] { return control_.write(*request); });
}

grpc::ServerUnaryReactor* Service::SetForwardingPipelineConfig(
    grpc::CallbackServerContext* context, const p4::v1::SetForwardingPipelineConfigRequest* request,
    p4::v1::SetForwardingPipelineConfigResponse*) {
  return unary(
      *context, writes_, request->ByteSizeLong(), [=, this] { control_.check_writer(*request); },
      [=, this] {
        control_.set_pipeline(*request);
        return grpc::Status::OK;
      });
}

grpc::ServerUnaryReactor* Service::Capabilities(grpc::CallbackServerContext* context,
                                                const p4::v1::CapabilitiesRequest* request,
                                                p4::v1::CapabilitiesResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  connections_.received(context->peer(), request->ByteSizeLong());
  context->GetRpcAllocatorState()->FreeRequest();
  reactor->Finish(answer([&] {
    check_name(*context);
    response->set_p4runtime_api_version(kApiVersion);
    return grpc::Status::OK;
  }));
  return reactor;
}

// Parses a request whose answer may be long, and has `body(request)` bring the status that the call
// ends with, on a thread for reads.
template <class Request, class Call, class Body>
void Service::ask(grpc::CallbackServerContext& context, const grpc::ByteBuffer& message,
                  const std::shared_ptr<Call>& call, Body body) {
  call->start();
  connections_.received(context.peer(), message.Length());
  const grpc::Status refusal = answer([&] {
    check_name(context);
    const auto request = std::make_shared<Request>();
    if (auto parsed = parse(message, *request); !parsed.ok()) {
      return parsed;
    }
    if (unsent_ > UnsentMessages::kMostBytesOfAll) {
      throw too_much("clients leave too many answers unread; ask again later");
    }
    const bool queued = reads_.submit(context.peer(), message.Length(), [=] {
      call->answer(answer([&] { return body(*request); }));
    });
    if (!queued) {
      throw too_much("too many requests of this client wait: send the next when one is answered");
    }
    return grpc::Status::OK;
  });
  if (!refusal.ok()) {
    call->answer(refusal);
  }
}

grpc::ServerUnaryReactor* Service::GetForwardingPipelineConfig(grpc::CallbackServerContext* context,
                                                               const grpc::ByteBuffer* message,
                                                               grpc::ByteBuffer* response) {
  using Request = p4::v1::GetForwardingPipelineConfigRequest;
  const auto call =
      std::make_shared<CountedCall>(*context, timer_, unsent_, connections_, *response);
  ask<Request>(*context, *message, call, [call = call.get(), this](const Request& request) {
    p4::v1::GetForwardingPipelineConfigResponse pipeline;
    control_.get_pipeline(request, pipeline);
    call->hold(pipeline.SerializeAsString());
    return grpc::Status::OK;
  });
  return call.get();
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* Service::Read(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* message) {
  const auto call = std::make_shared<ReadCall>(*context, timer_, unsent_, connections_);
  ask<p4::v1::ReadRequest>(*context, *message, call,
                           [call = call.get(), this](const p4::v1::ReadRequest& request) {
                             return control_.read(request, call->messages());
                           });
  return call.get();
}

// A client that opens many streams and says nothing on them loses the oldest; others keep their way
// in.
void Service::make_room_for_a_mute_stream() {
  std::vector<std::shared_ptr<Session>> evicted;
  {
    const std::lock_guard lock(mute_mutex_);
    std::erase_if(mute_, [](const auto& weak) {
      const auto session = weak.lock();
      return session == nullptr || !session->is_mute();
    });
    while (mute_.size() >= kMaxMuteStreams) {
      evicted.push_back(mute_.front().lock());
      mute_.pop_front();
    }
  }
  for (const auto& session : evicted) {
    if (session != nullptr) {
      session->finish(too_much("too many streams are open without a message").status());
    }
  }
}

grpc::ServerBidiReactor<p4::v1::StreamMessageRequest, p4::v1::StreamMessageResponse>*
Service::StreamChannel(grpc::CallbackServerContext* context) {
  const auto session =
      std::make_shared<Session>(*context, control_, streams_, timer_, connections_, unread_);
  log_.debug("stream of " + session->peer() + " opened");
  session->start(options_.stream_timeout);
  const grpc::Status refusal = answer([&] {
    check_name(*context);
    return grpc::Status::OK;
  });
  if (!refusal.ok()) {
    session->finish(refusal);
    return session.get();
  }
  make_room_for_a_mute_stream();
  const std::lock_guard lock(mute_mutex_);
  mute_.push_back(session);
  return session.get();
}

}  // namespace catchment::server
