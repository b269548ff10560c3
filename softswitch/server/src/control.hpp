// What the requests of P4Runtime do on one switch (one device id), whatever brought them.
#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "arbiter.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "log.hpp"
#include "notifier.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "pipelines.hpp"
#include "program_store.hpp"
#include "session.hpp"
#include "state_lock.hpp"
#include "unsent_messages.hpp"
#include "watch_ports.hpp"

namespace catchment::server {

struct ControlOptions {
  std::uint64_t device_id = 1;
  std::size_t max_status_bytes = 8192;  // what clients take as the status of a call
  std::set<std::uint32_t> ports;        // of the switch, that of the CPU included
};

// Every request checks device, role and primary, then the rest; writes are carried out one batch
// after the other, reads in parallel between them. Functions throw RpcError.
class Control final : public SessionHandler {
 public:
  // `packet_out` sends a frame into the pipeline by the CPU port; false: too many wait. What is
  // passed by reference must outlive the control.
  Control(ControlOptions options, const Log& log, softswitch::Dataplane& dataplane,
          ProgramStore& programs, std::function<bool(std::string)> packet_out);

  // Puts a pipeline in force before there are clients.
  void start_with(const p4::v1::ForwardingPipelineConfig& config);

  // Refuses, without waiting for anything, what write() or set_pipeline() would refuse now because
  // of the client that asks.
  template <class Request>
  void check_writer(const Request& request);

  grpc::Status write(const p4::v1::WriteRequest& request);
  grpc::Status read(const p4::v1::ReadRequest& request, UnsentMessages& messages);
  void set_pipeline(const p4::v1::SetForwardingPipelineConfigRequest& request);
  void get_pipeline(const p4::v1::GetForwardingPipelineConfigRequest& request,
                    p4::v1::GetForwardingPipelineConfigResponse& response);

  void handle(const std::shared_ptr<Session>& session,
              const p4::v1::StreamMessageRequest& request) override;
  void ended(const std::shared_ptr<Session>& session) override;

 private:
  template <class Request>
  Permission require_primary(const Request& request);
  void check_device(std::uint64_t device_id) const;
  void use_running();
  void apply_digests(const google::protobuf::RepeatedPtrField<p4::v1::Update>& updates);
  void acknowledge(const std::shared_ptr<Session>& session, const p4::v1::DigestListAck& ack);
  void send_packet(const std::shared_ptr<Session>& session, const p4::v1::PacketOut& packet);

  const ControlOptions options_;
  const WatchPorts watch_ports_;
  const Log& log_;
  std::function<bool(std::string)> packet_out_;
  StateLock state_;
  Arbiter arbiter_;
  Pipelines pipelines_;
  Notifier notifier_;
  std::shared_ptr<const Target> used_;  // the pipeline that the notifier knows
};

}  // namespace catchment::server
