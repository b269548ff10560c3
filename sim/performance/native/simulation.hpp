// A cluster in simulation: lines, switches, hosts, what they do, and what fails when.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fabric.hpp"
#include "nic_model.hpp"
#include "operations.hpp"
#include "switch_model.hpp"
#include "trains.hpp"

namespace catchment::performance {

// A change at a time.
struct Incident {
  enum class Kind : std::uint8_t { kFaults, kSwitch, kHost, kProgram };

  Kind kind = Kind::kFaults;
  std::uint32_t target = 0;  // a line, a switch, a host with a NIC, one in software
  bool down = false;         // of a switch or a host
  world::LineFaults faults;  // of a line from then on
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : fabric(seed),
        switches(fabric),
        nics(fabric),
        programs(fabric),
        operations(fabric, nics, programs),
        source_(fabric.world.add_node()) {}
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Fabric fabric;
  SwitchModel switches;
  NicModel nics;
  SoftwareModel programs;
  Operations operations;

  void add_incident(Picos at, const Incident& incident);
  // The number of one more stream, for its members and branches.
  std::uint32_t add_stream() { return streams_++; }
  // From now on frames are carried in trains. Not for hosts in software: their endpoints have no
  // state that can be compared.
  void carry_trains() { trains_.emplace(fabric, nics, switches); }
  // Streams and operations begin.
  void start();
  // At most so many events more, until all operations have ended or it is `end`. True: it is over.
  bool run(std::uint64_t events, Picos end);

  // For how long nothing has come of anything.
  [[nodiscard]] Picos idle() const;
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] const std::optional<Trains>& trains() const { return trains_; }

 private:
  void happen(const world::Event<Happening>& event);
  void befall(const Incident& incident);

  std::uint32_t source_;
  std::vector<Incident> incidents_;
  std::uint64_t events_ = 0;
  std::uint32_t streams_ = 0;
  std::optional<Trains> trains_;
};

}  // namespace catchment::performance
