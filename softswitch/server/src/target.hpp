// A pipeline that requests refer to: the switch, the P4Info, and what the switch itself has no
// place for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catchment/softswitch/dataplane.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "rpc_error.hpp"
#include "schema.hpp"

namespace catchment::server {

// Requests use it with the server's state lock held (shared for reads, exclusive for writes).
class Target {
 public:
  Target(softswitch::Dataplane& dataplane, std::shared_ptr<const Schema> schema)
      : dataplane_(dataplane), schema_(std::move(schema)) {}

  softswitch::Dataplane& dataplane() const { return dataplane_; }
  const Schema& schema() const { return *schema_; }
  const std::shared_ptr<const Schema>& shared_schema() const { return schema_; }

  // Replicas name their port as a number or as a byte string; reads give back the form written.
  enum class Replication { multicast, clone };
  using PortForms = std::vector<bool>;  // per replica: true for a byte string
  std::map<std::pair<Replication, std::uint32_t>, PortForms> port_forms;

  // Digests that a client has asked for, by id.
  std::map<std::uint32_t, p4::v1::DigestEntry::Config> digests;

 private:
  softswitch::Dataplane& dataplane_;
  std::shared_ptr<const Schema> schema_;
};

// Throws RpcError with the switch's own code and reason unless the operation went well.
inline void check(const softswitch::Status& status) {
  if (!status.ok()) {
    throw RpcError(static_cast<grpc::StatusCode>(status.code()), status.message());
  }
}

// Returns the value, or throws like check().
template <class T>
T take(softswitch::Result<T> result) {
  check(result.status());
  return std::move(result.value());
}

}  // namespace catchment::server
