// The P4Runtime service of one switch (one device id).
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "arbiter.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "log.hpp"
#include "notifier.hpp"
#include "p4/v1/p4runtime.grpc.pb.h"
#include "pipelines.hpp"
#include "program_store.hpp"
#include "state_lock.hpp"

namespace catchment::server {

struct ServiceOptions {
  std::uint64_t device_id = 1;
  std::size_t max_status_bytes = 8192;  // what clients take as the status of a call
};

// Every call checks device, role and primary, then the request; writes are carried out one batch
// after the other, reads in parallel between them.
class Service final : public p4::v1::P4Runtime::Service {
 public:
  // `packet_out` sends a frame into the pipeline by the CPU port. What is passed by reference must
  // outlive the service.
  Service(ServiceOptions options, const Log& log, softswitch::Dataplane& dataplane,
          ProgramStore& programs, std::function<void(std::string)> packet_out);

  // Puts a pipeline in force before there are clients. Throws RpcError when it cannot.
  void start_with(const p4::v1::ForwardingPipelineConfig& config);

  grpc::Status Write(grpc::ServerContext* context, const p4::v1::WriteRequest* request,
                     p4::v1::WriteResponse* response) override;
  grpc::Status Read(grpc::ServerContext* context, const p4::v1::ReadRequest* request,
                    grpc::ServerWriter<p4::v1::ReadResponse>* writer) override;
  grpc::Status SetForwardingPipelineConfig(
      grpc::ServerContext* context, const p4::v1::SetForwardingPipelineConfigRequest* request,
      p4::v1::SetForwardingPipelineConfigResponse* response) override;
  grpc::Status GetForwardingPipelineConfig(
      grpc::ServerContext* context, const p4::v1::GetForwardingPipelineConfigRequest* request,
      p4::v1::GetForwardingPipelineConfigResponse* response) override;
  grpc::Status StreamChannel(grpc::ServerContext* context, Session::Stream* stream) override;
  grpc::Status Capabilities(grpc::ServerContext* context,
                            const p4::v1::CapabilitiesRequest* request,
                            p4::v1::CapabilitiesResponse* response) override;

 private:
  void check_device(std::uint64_t device_id) const;
  void use_running();
  void apply_digests(const google::protobuf::RepeatedPtrField<p4::v1::Update>& updates);
  void handle(const std::shared_ptr<Session>& session, const p4::v1::StreamMessageRequest& request);
  void acknowledge(const std::shared_ptr<Session>& session, const p4::v1::DigestListAck& ack);
  void send_packet(const std::shared_ptr<Session>& session, const p4::v1::PacketOut& packet);

  const ServiceOptions options_;
  const Log& log_;
  std::function<void(std::string)> packet_out_;
  StateLock state_;
  Arbiter arbiter_;
  Pipelines pipelines_;
  Notifier notifier_;
  std::shared_ptr<const Target> used_;  // the pipeline that the notifier knows
};

}  // namespace catchment::server
