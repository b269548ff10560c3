// The P4Runtime service as gRPC calls it: which client may speak, how much may wait, which thread
// does it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "connections.hpp"
#include "control.hpp"
#include "freed_requests.hpp"
#include "log.hpp"
#include "p4/v1/p4runtime.grpc.pb.h"
#include "session.hpp"
#include "timer.hpp"
#include "work_queue.hpp"

namespace catchment::server {

struct ServiceOptions {
  std::vector<std::string> client_names;        // that certificates may prove; empty: any
  std::chrono::milliseconds stream_timeout{0};  // for the first message of a stream
};

// Answers that may be long are written as bytes, in which they take the least memory.
template <class Base>
using RawReads = p4::v1::P4Runtime::WithRawCallbackMethod_Read<
    p4::v1::P4Runtime::WithRawCallbackMethod_GetForwardingPipelineConfig<Base>>;

// No call holds a thread while it waits for its client or for others: gRPC's threads take a request
// and hand it on to one thread for writes, one for stream messages and a few for reads. So however
// many clients there are, a write waits for the writes before it and for as many reads at most.
class Service final : public RawReads<p4::v1::P4Runtime::CallbackService> {
 public:
  // What is passed by reference must outlive the service.
  Service(ServiceOptions options, const Log& log, Control& control, Connections& connections);

  grpc::ServerUnaryReactor* Write(grpc::CallbackServerContext* context,
                                  const p4::v1::WriteRequest* request,
                                  p4::v1::WriteResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Read(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* message) override;
  grpc::ServerUnaryReactor* SetForwardingPipelineConfig(
      grpc::CallbackServerContext* context,
      const p4::v1::SetForwardingPipelineConfigRequest* request,
      p4::v1::SetForwardingPipelineConfigResponse* response) override;
  grpc::ServerUnaryReactor* GetForwardingPipelineConfig(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* message,
                                                        grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<p4::v1::StreamMessageRequest, p4::v1::StreamMessageResponse>*
  StreamChannel(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Capabilities(grpc::CallbackServerContext* context,
                                         const p4::v1::CapabilitiesRequest* request,
                                         p4::v1::CapabilitiesResponse* response) override;

 private:
  void check_name(const grpc::CallbackServerContext& context) const;
  void make_room_for_a_mute_stream();

  template <class Check, class Body>
  grpc::ServerUnaryReactor* unary(grpc::CallbackServerContext& context, WorkQueue& queue,
                                  std::size_t bytes, Check check, Body body);

  template <class Request, class Call, class Body>
  void ask(grpc::CallbackServerContext& context, const grpc::ByteBuffer& message,
           const std::shared_ptr<Call>& call, Body body);

  FreedRequests<p4::v1::WriteRequest, p4::v1::WriteResponse> write_messages_;
  FreedRequests<p4::v1::SetForwardingPipelineConfigRequest,
                p4::v1::SetForwardingPipelineConfigResponse>
      pipeline_messages_;
  FreedRequests<p4::v1::CapabilitiesRequest, p4::v1::CapabilitiesResponse> capability_messages_;
  const ServiceOptions options_;
  const Log& log_;
  Control& control_;
  Connections& connections_;
  std::atomic<std::size_t> unsent_ = 0;  // bytes of answers that may be long
  std::atomic<std::size_t> unread_ = 0;  // bytes that wait on streams
  std::mutex mute_mutex_;
  std::deque<std::weak_ptr<Session>> mute_;  // streams in the order in which they were opened
  Timer timer_;
  WorkQueue writes_;
  WorkQueue reads_;
  WorkQueue streams_;
};

}  // namespace catchment::server
