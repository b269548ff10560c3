#include "simulation.hpp"

#include <algorithm>

namespace catchment::performance {

void Simulation::add_incident(Picos at, const Incident& incident) {
  fabric.world.schedule(source_, at,
                        {What::kIncident, static_cast<std::uint32_t>(incidents_.size()), {}});
  incidents_.push_back(incident);
}

void Simulation::start() {
  nics.start();
  programs.start();
  operations.start();
}

bool Simulation::run(std::uint64_t events, Picos end) {
  const auto visit = [this](const world::Event<Happening>& event) { happen(event); };
  for (; events != 0; --events) {
    if (operations.left() == 0) return true;
    if (!fabric.world.step(end, visit)) return true;
    ++events_;
    if (!trains_) continue;
    if (const auto speaker = nics.spoken()) trains_->on_heartbeat(*speaker, events_, end);
  }
  return operations.left() == 0;
}

Picos Simulation::idle() const {
  return fabric.world.now() -
         std::max({nics.progressed_at(), programs.progressed_at(), operations.busy_until()});
}

void Simulation::happen(const world::Event<Happening>& event) {
  const Happening& what = event.payload;
  if (trains_ && is_appointed(what.what)) trains_->on_appointment();
  switch (what.what) {
    case What::kAtSwitch:
      return switches.on_frame(what.target, what.frame);
    case What::kAtMember:
      return nics.on_frame(what.target, what.frame);
    case What::kAtProgram:
      return programs.on_frame(what.target, what.frame);
    case What::kWake:
      return programs.on_wake(what.target);
    case What::kPump:
      return nics.on_pump(what.target);
    case What::kVectors:
      return nics.on_vectors(what.target, what.frame.seq, what.frame.ack);
    case What::kHeartbeat:
      return nics.on_heartbeat(what.target);
    case What::kTimeout:
      return nics.on_timeout(what.target);
    case What::kDone:
      return operations.on_done(what.target);
    case What::kIncident:
      return befall(incidents_[what.target]);
  }
}

void Simulation::befall(const Incident& incident) {
  switch (incident.kind) {
    case Incident::Kind::kFaults:
      fabric.line(incident.target).set_faults(incident.faults);
      return;
    case Incident::Kind::kSwitch:
      return switches.fail(incident.target, incident.down);
    case Incident::Kind::kHost:
      return nics.fail(incident.target, incident.down);
    case Incident::Kind::kProgram:
      return programs.fail(incident.target, incident.down);
  }
}

}  // namespace catchment::performance
