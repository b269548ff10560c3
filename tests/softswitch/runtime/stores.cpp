// An action profile, and multicast groups with clone sessions, as Python objects: what clients are
// told of them, and what frames see. Any call may be told after how many allocations memory ends.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "profile_store.hpp"
#include "replication_store.hpp"
#include "scarce.hpp"

namespace catchment::softswitch {
namespace {

constexpr std::uint32_t kWide = 2;
constexpr std::uint32_t kNarrow = 3;
constexpr std::uint32_t kParam = 1;
constexpr std::uint32_t kManyBits = 640;

ProgramInfo make_program() {
  ProgramInfo program;
  program.actions = {{kNarrow, "narrow", {{kParam, "value", 64}}},
                     {kWide, "wide", {{kParam, "value", kManyBits}}}};
  TableInfo table;
  table.name = "table";
  table.actions = {{kNarrow, true, true}, {kWide, true, true}};
  program.tables = {table};
  return program;
}

class Profile {
 public:
  Profile()
      : program_(make_program()),
        info_{.id = 1, .name = "profile", .size = 1024, .selector = true, .max_group_size = 0},
        store_(program_, info_, {program_.tables.data()}, memory_) {}

  bool insert_member(std::uint32_t id, std::uint64_t value, bool wide, std::uint64_t allocations) {
    const ProfileMember member = member_of(id, value, wide);
    return scarce(allocations, [&] { return store_.insert(member); });
  }
  bool modify_member(std::uint32_t id, std::uint64_t value, bool wide, std::uint64_t allocations) {
    const ProfileMember member = member_of(id, value, wide);
    return scarce(allocations, [&] { return store_.modify(member); });
  }
  void remove_member(std::uint32_t id) {
    scarce(kEndless, [&] { return store_.remove(member_of(id, 0, false)); });
  }
  using Weighted = std::vector<std::pair<std::uint32_t, std::int32_t>>;
  bool insert_group(std::uint32_t id, const Weighted& members, std::uint64_t allocations) {
    const ProfileGroup group = group_of(id, members);
    return scarce(allocations, [&] { return store_.insert(group); });
  }
  bool modify_group(std::uint32_t id, const Weighted& members, std::uint64_t allocations) {
    const ProfileGroup group = group_of(id, members);
    return scarce(allocations, [&] { return store_.modify(group); });
  }
  void remove_group(std::uint32_t id) {
    scarce(kEndless, [&] { return store_.remove(group_of(id, {})); });
  }
  /// Each member watches the port of its number.
  bool set_down(const std::vector<std::uint64_t>& ports, std::uint64_t allocations) {
    return scarce(allocations, [&] {
      PortChanges changes;
      DownPorts down(ports.begin(), ports.end());
      store_.prepare(down, changes);
      for (auto& [actions, fresh] : changes) {
        actions->take(std::move(fresh));
      }
      store_.set_down_ports(std::move(down));
      return Status();
    });
  }

  /// Members and the last eight bytes of their values.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint64_t>> members() const {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> out;
    const auto found = store_.members(0);
    for (const ProfileMember& member : found.value()) {
      std::uint64_t value = 0;
      for (const char c : member.action.params[0].value) {
        value = (value << 8) | static_cast<std::uint8_t>(c);
      }
      out.emplace_back(member.member_id, value);
    }
    return out;
  }
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Weighted>> groups() const {
    std::vector<std::pair<std::uint32_t, Weighted>> out;
    const auto found = store_.groups(0);
    for (const ProfileGroup& group : found.value()) {
      Weighted members;
      for (const ProfileGroupMember& member : group.members) {
        members.emplace_back(member.member_id, member.weight);
      }
      out.emplace_back(group.group_id, std::move(members));
    }
    return out;
  }
  /// The value that a frame finds with a member.
  [[nodiscard]] std::uint64_t value(std::uint32_t member) const {
    return store_.member_action(member)->data[0];
  }
  /// The values among which frames choose one.
  [[nodiscard]] std::vector<std::uint64_t> choices(std::uint32_t group) {
    const rt::SelectorGroup& view = store_.group(group)->actions->view;
    std::vector<std::uint64_t> out;
    for (std::uint32_t i = 0; i < view.count; ++i) {
      out.push_back(view.members[i]->data[0]);
    }
    return out;
  }
  [[nodiscard]] std::size_t state_bytes() const { return memory_.in_use(); }

 private:
  static ProfileMember member_of(std::uint32_t id, std::uint64_t value, bool wide) {
    return {1, id, {wide ? kWide : kNarrow, {{kParam, bytes_of(value)}}}};
  }
  static ProfileGroup group_of(std::uint32_t id, const Weighted& members) {
    ProfileGroup group{.profile_id = 1, .group_id = id, .members = {}};
    for (const auto& [member, weight] : members) {
      group.members.push_back({member, weight, bytes_of(member)});
    }
    return group;
  }

  ProgramInfo program_;
  ProfileInfo info_;
  ScarceMemory memory_;
  ProfileStore store_;
};

using Copies = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

std::vector<Replica> replicas_of(const Copies& copies) {
  std::vector<Replica> out;
  for (const auto& [port, instance] : copies) {
    out.push_back({port, instance});
  }
  return out;
}

Copies copies_of(const Replica* replicas, std::size_t count) {
  Copies out;
  for (std::size_t i = 0; i < count; ++i) {
    out.emplace_back(replicas[i].port, replicas[i].instance);
  }
  return out;
}

class Replication {
 public:
  Replication() : lists_(rt::kGroups), targets_(rt::kSessions), store_(engine_, memory_) {
    engine_.groups = lists_.data();
    engine_.sessions = targets_.data();
  }

  bool write_group(bool fresh, std::uint32_t id, const Copies& copies, const std::string& metadata,
                   std::uint64_t allocations) {
    const MulticastGroup group{id, replicas_of(copies), metadata};
    return scarce(allocations, [&] { return fresh ? store_.insert(group) : store_.modify(group); });
  }
  bool write_session(bool fresh, std::uint32_t id, const Copies& copies, std::int32_t length,
                     std::uint64_t allocations) {
    const CloneSession session{id, replicas_of(copies), 0, length};
    return scarce(allocations,
                  [&] { return fresh ? store_.insert(session) : store_.modify(session); });
  }
  void remove_group(std::uint32_t id) {
    scarce(kEndless, [&] { return store_.remove(MulticastGroup{id, {}, {}}); });
  }
  void remove_session(std::uint32_t id) {
    scarce(kEndless, [&] { return store_.remove(CloneSession{id, {}, 0, 0}); });
  }
  /// Number, copies and metadata.
  [[nodiscard]] std::vector<std::tuple<std::uint32_t, Copies, std::string>> groups() const {
    std::vector<std::tuple<std::uint32_t, Copies, std::string>> out;
    const auto found = store_.groups(0);
    for (const MulticastGroup& group : found.value()) {
      out.emplace_back(group.group_id, copies_of(group.replicas.data(), group.replicas.size()),
                       group.metadata);
    }
    return out;
  }
  /// Number, copies and length.
  [[nodiscard]] std::vector<std::tuple<std::uint32_t, Copies, std::int32_t>> sessions() const {
    std::vector<std::tuple<std::uint32_t, Copies, std::int32_t>> out;
    const auto found = store_.sessions(0);
    for (const CloneSession& session : found.value()) {
      out.emplace_back(session.session_id,
                       copies_of(session.replicas.data(), session.replicas.size()),
                       session.packet_length_bytes);
    }
    return out;
  }
  /// What a frame is copied to.
  [[nodiscard]] Copies group_copies(std::uint32_t id) const {
    return copies_of(lists_[id].replicas, lists_[id].count);
  }
  [[nodiscard]] std::tuple<bool, Copies, std::uint32_t> session_copies(std::uint32_t id) const {
    const rt::CloneTarget& target = targets_[id];
    return {target.present, copies_of(target.to.replicas, target.to.count), target.truncate_to};
  }
  [[nodiscard]] std::size_t state_bytes() const { return memory_.in_use(); }

 private:
  std::vector<rt::ReplicaList> lists_;
  std::vector<rt::CloneTarget> targets_;
  rt::Engine engine_;
  ScarceMemory memory_;
  ReplicationStore store_;
};

}  // namespace

void bind_stores(pybind11::module_& module) {
  namespace py = pybind11;
  using namespace py::literals;
  py::class_<Profile>(module, "Profile")
      .def(py::init<>())
      .def("insert_member", &Profile::insert_member, "member"_a, "value"_a, "wide"_a = false,
           "allocations"_a = kEndless)
      .def("modify_member", &Profile::modify_member, "member"_a, "value"_a, "wide"_a = false,
           "allocations"_a = kEndless)
      .def("remove_member", &Profile::remove_member)
      .def("insert_group", &Profile::insert_group, "group"_a, "members"_a,
           "allocations"_a = kEndless)
      .def("modify_group", &Profile::modify_group, "group"_a, "members"_a,
           "allocations"_a = kEndless)
      .def("remove_group", &Profile::remove_group)
      .def("set_down", &Profile::set_down, "ports"_a, "allocations"_a = kEndless)
      .def("members", &Profile::members)
      .def("groups", &Profile::groups)
      .def("value", &Profile::value)
      .def("choices", &Profile::choices)
      .def("state_bytes", &Profile::state_bytes);
  py::class_<Replication>(module, "Replication")
      .def(py::init<>())
      .def("write_group", &Replication::write_group, "fresh"_a, "group"_a, "copies"_a,
           "metadata"_a = "", "allocations"_a = kEndless)
      .def("write_session", &Replication::write_session, "fresh"_a, "session"_a, "copies"_a,
           "length"_a = 0, "allocations"_a = kEndless)
      .def("remove_group", &Replication::remove_group)
      .def("remove_session", &Replication::remove_session)
      .def("groups", &Replication::groups)
      .def("sessions", &Replication::sessions)
      .def("group_copies", &Replication::group_copies)
      .def("session_copies", &Replication::session_copies)
      .def("state_bytes", &Replication::state_bytes);
}

}  // namespace catchment::softswitch
