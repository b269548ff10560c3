#include "rail_costs.hpp"

#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "rails/cost_meter.hpp"

namespace py = pybind11;
using namespace catchment::host;

namespace {

// RailCost, field for field.
using RailWords =
    std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

}  // namespace

void add_rail_costs(py::module_& module) {
  py::class_<rails::CostTable>(module, "CostTable")
      .def(py::init([](const std::vector<std::tuple<std::uint32_t, std::uint32_t>>& costs) {
        std::vector<rails::RailCost> believed;
        for (const auto& [start, rate] : costs) {
          believed.push_back({.start_ns = start, .bytes_per_ms = rate});
        }
        return std::make_unique<rails::CostTable>(std::move(believed));
      }))
      .def("learn",
           [](rails::CostTable& table,
              const std::vector<std::tuple<std::uint8_t, std::uint8_t, std::uint8_t, std::uint32_t,
                                           std::uint32_t>>& words,
              std::size_t each) {
             std::vector<rails::RailSample> samples;
             for (const auto& [rail, size_class, beside, start, rate] : words) {
               samples.push_back({rail, size_class, beside, 0, start, rate});
             }
             table.learn(samples, each);
           })
      .def_property_readonly("version", &rails::CostTable::version)
      .def("costs", [](const rails::CostTable& table, std::uint64_t bytes) {
        std::vector<RailWords> costs;
        for (const rails::RailCost& cost : table.costs(bytes)) {
          costs.emplace_back(cost.start_ns, cost.bytes_per_ms, cost.nominal, cost.beside_start_ns,
                             cost.beside_bytes_per_ms);
        }
        return costs;
      });
  module.def("size_class", &rails::size_class);
  module.def("tried", [](const std::vector<RailWords>& words,
                         const std::vector<std::uint32_t>& together, std::uint8_t policy,
                         std::uint64_t elements, std::uint64_t sample, std::uint64_t turn) {
    std::vector<rails::RailCost> costs;
    for (const auto& [start, rate, nominal, beside, beside_rate] : words) {
      costs.push_back({start, rate, nominal, beside, beside_rate});
    }
    std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> shares;
    for (const rails::Share& share : rails::tried(
             costs, together, static_cast<rails::Policy>(policy), elements, sample, turn)) {
      shares.emplace_back(share.rail, share.first, share.elements);
    }
    return shares;
  });

  py::class_<rails::CostMeter>(module, "CostMeter")
      .def(py::init<>())
      .def("add",
           [](rails::CostMeter& meter, std::uint8_t rail, std::uint8_t size_class,
              std::uint64_t bytes, std::uint64_t agreed, std::uint64_t latency,
              std::uint32_t believed) {
             const rails::RailSample of{.rail = rail, .size_class = size_class};
             if (believed == 0) {
               meter.add_long(of, bytes, {agreed, latency});
             } else {
               meter.add_short(of, bytes, {agreed, latency}, believed);
             }
           })
      .def("report", [](rails::CostMeter& meter, std::size_t room) {
        std::vector<rails::RailSample> samples(room);
        meter.report(samples);
        std::vector<std::tuple<std::uint8_t, std::uint8_t, std::uint32_t, std::uint32_t>> said;
        for (const rails::RailSample& sample : samples) {
          if (sample.size_class == 0) continue;
          said.emplace_back(sample.rail, sample.size_class, sample.start_ns, sample.bytes_per_ms);
        }
        return said;
      });
}
