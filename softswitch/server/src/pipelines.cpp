#include "pipelines.hpp"

#include <string>
#include <utility>

#include "program_check.hpp"
#include "state_copy.hpp"

namespace catchment::server {

Pipelines::Pipelines(softswitch::Dataplane& dataplane, ProgramStore& programs)
    : dataplane_(dataplane), programs_(programs) {}

void Pipelines::set(const Request& request) {
  const bool needs_config = request.action() != Request::COMMIT;
  if (needs_config && !request.has_config() && request.action() != Request::UNSPECIFIED) {
    throw invalid_argument("the request has no config");
  }
  switch (request.action()) {
    case Request::VERIFY:
      verify(request.config());
      return;
    case Request::VERIFY_AND_SAVE:
      return save(request.config());
    case Request::VERIFY_AND_COMMIT:
      return commit(request.config());
    case Request::COMMIT:
      return commit_saved(request);
    case Request::RECONCILE_AND_COMMIT:
      return reconcile(request.config());
    case Request::UNSPECIFIED:
      throw invalid_argument("the action of the request is not set (VERIFY_AND_COMMIT, ...)");
    default:
      throw invalid_argument("there is no action " + std::to_string(request.action()) +
                             " (VERIFY_AND_COMMIT, ...)");
  }
}

Pipelines::Candidate Pipelines::verify(const Config& config) {
  Candidate candidate;
  candidate.config = config;
  const auto schema = std::make_shared<Schema>(config.p4info());
  candidate.program = std::make_unique<ProgramCopy>(programs_.find(config.p4_device_config()));
  candidate.scratch = std::make_unique<softswitch::Dataplane>(dataplane_.options());
  const auto loaded = candidate.scratch->load(candidate.program->path().string());
  if (!loaded.ok()) {
    throw invalid_argument("the program cannot be loaded: " + loaded.message());
  }
  const auto info = candidate.scratch->info();
  check_program(*schema, *info);
  schema->use_packet_layouts(info->packet_headers);
  candidate.schema = schema;
  return candidate;
}

void Pipelines::put_in_force(Candidate& candidate, bool with_state_of_scratch) {
  check(dataplane_.load(candidate.program->path().string()));
  running_.config = std::move(candidate.config);
  running_.target = std::make_shared<Target>(dataplane_, candidate.schema);
  saved_target_.reset();
  saved_ = {};
  if (with_state_of_scratch) {
    copy_forwarding_state(*candidate.scratch, dataplane_);
    copy_cells(*candidate.scratch, dataplane_);
  }
}

void Pipelines::commit(const Config& config) {
  Candidate candidate = verify(config);
  put_in_force(candidate, false);
}

void Pipelines::save(const Config& config) {
  saved_ = verify(config);
  saved_target_ = std::make_shared<Target>(*saved_.scratch, saved_.schema);
}

void Pipelines::commit_saved(const Request& request) {
  if (request.has_config()) {
    throw invalid_argument("COMMIT takes the saved config; leave the config out");
  }
  if (saved_target_ == nullptr) {
    throw not_found("there is no saved config: send VERIFY_AND_SAVE first");
  }
  // The writes since the config was saved went to the switch that was set up for it.
  Candidate candidate = std::move(saved_);
  const std::shared_ptr<Target> written = std::move(saved_target_);
  const softswitch::Dataplane::Pause pause(dataplane_);
  put_in_force(candidate, true);
  running_.target->port_forms = written->port_forms;
  running_.target->digests = written->digests;
}

void Pipelines::reconcile(const Config& config) {
  if (running_.target == nullptr) {
    return commit(config);
  }
  Candidate candidate = verify(config);
  // Frames that ran between the copies would be lost from some cells and not from others.
  const softswitch::Dataplane::Pause pause(dataplane_);
  copy_forwarding_state(dataplane_, *candidate.scratch);
  copy_cells(dataplane_, *candidate.scratch);
  const std::shared_ptr<Target> before = running_.target;
  put_in_force(candidate, true);
  running_.target->port_forms = before->port_forms;
  for (const auto& [id, digest] : before->digests) {
    for (const auto& info : running_.target->schema().info().digests()) {
      if (info.preamble().id() == id) {
        running_.target->digests.emplace(id, digest);
      }
    }
  }
}

Target& Pipelines::target() {
  if (saved_target_ != nullptr) {
    return *saved_target_;
  }
  if (running_.target == nullptr) {
    throw failed_precondition(
        "there is no forwarding pipeline yet: send SetForwardingPipelineConfig first");
  }
  return *running_.target;
}

const Pipelines::Config* Pipelines::config() const {
  if (saved_target_ != nullptr) {
    return &saved_.config;
  }
  return running_.target == nullptr ? nullptr : &running_.config;
}

}  // namespace catchment::server
