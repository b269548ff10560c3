// The forwarding pipeline configurations: the one that runs, and the one that is saved for later.
#pragma once

#include <memory>
#include <string>

#include "catchment/softswitch/dataplane.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "program_store.hpp"
#include "target.hpp"

namespace catchment::server {

// Use it with the server's state lock held: shared for const methods, exclusive for the others.
class Pipelines {
 public:
  using Config = p4::v1::ForwardingPipelineConfig;
  using Request = p4::v1::SetForwardingPipelineConfigRequest;

  Pipelines(softswitch::Dataplane& dataplane, ProgramStore& programs);

  // Does what the request's action says. Throws RpcError and changes nothing when it cannot.
  void set(const Request& request);

  // Puts a config in force, as VERIFY_AND_COMMIT does.
  void commit(const Config& config);

  // What reads and writes refer to: the saved pipeline when there is one, else the one that runs.
  // Throws RpcError(FAILED_PRECONDITION) when there is neither.
  Target& target();

  // The config that goes with target(), or nullptr.
  const Config* config() const;

  // The pipeline that carries packets; nullptr before the first commit.
  std::shared_ptr<const Target> running() const { return running_.target; }

 private:
  struct Pipeline {
    Config config;
    std::shared_ptr<Target> target;
  };
  // A config checked, its program loaded into a switch of its own.
  struct Candidate {
    Config config;
    std::shared_ptr<const Schema> schema;
    std::unique_ptr<ProgramCopy> program;
    std::unique_ptr<softswitch::Dataplane> scratch;
  };

  Candidate verify(const Config& config);
  void put_in_force(Candidate& candidate, bool with_state_of_scratch);
  void save(const Config& config);
  void commit_saved(const Request& request);
  void reconcile(const Config& config);

  softswitch::Dataplane& dataplane_;
  ProgramStore& programs_;
  Pipeline running_;
  Candidate saved_;
  std::shared_ptr<Target> saved_target_;
};

}  // namespace catchment::server
