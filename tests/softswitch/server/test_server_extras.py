"""Action profiles and selectors, meters, digests, value sets, idle timeouts: control messages and the frames' fate."""

from __future__ import annotations

import os
import time

import pytest
from frame_ports import FramePorts, extras_probe
from raw_client import Names, RawClient, UpdatesFailedError, as_bytes
from server_programs import Program

from catchment.wire.generated import p4runtime_pb2

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, RESOURCE_EXHAUSTED, OUT_OF_RANGE = 3, 5, 6, 8, 11
SRC = 0x020000000009
GREEN, YELLOW, RED = 0, 1, 2
Entity = p4runtime_pb2.Entity


@pytest.fixture
def program(extras: Program) -> Program:
    return extras


def code_of(call: object, *arguments: object) -> int:
    with pytest.raises(UpdatesFailedError) as caught:
        call(*arguments)  # type: ignore[operator]
    ((code, message),) = caught.value.errors
    assert message
    return code


def through(ports: FramePorts, flow: int, src: int = SRC) -> dict[str, int]:
    """Sends one probe and returns what came back in it."""
    ports.send(1, extras_probe(src, flow))
    frame = ports.receive(2)
    fields = {"member": (16, 2), "group": (18, 2), "color": (20, 1), "direct_color": (21, 1), "idle": (22, 2)}
    return {name: int.from_bytes(frame[at : at + size], "big") for name, (at, size) in fields.items()}


def member(names: Names, profile: str, number: int, action: str, value: int) -> Entity:
    entity = Entity()
    entry = entity.action_profile_member
    entry.action_profile_id = names.profile_id(profile)
    entry.member_id = number
    entry.action.action_id = names.action_id(action)
    entry.action.params.add(param_id=1, value=as_bytes(value))
    return entity


def group(names: Names, number: int, *members: tuple[int, int], max_size: int = 0) -> Entity:
    entity = Entity()
    entry = entity.action_profile_group
    entry.action_profile_id = names.profile_id("groups")
    entry.group_id = number
    entry.max_size = max_size
    for member_id, weight in members:
        entry.members.add(member_id=member_id, weight=weight)
    return entity


def pointing(names: Names, table: str, flow: int, *, to_member: int = 0, to_group: int = 0) -> Entity:
    entity = names.entry(table, {1: flow})
    if to_member:
        entity.table_entry.action.action_profile_member_id = to_member
    if to_group:
        entity.table_entry.action.action_profile_group_id = to_group
    return entity


def test_profile_members(wired: RawClient, ports: FramePorts, names: Names) -> None:
    first = member(names, "members", 1, "set_member", 11)
    entry = pointing(names, "member_t", 5, to_member=1)
    assert code_of(wired.insert, entry) == NOT_FOUND
    wired.insert(first, member(names, "members", 2, "set_member", 22))
    wired.insert(entry)
    assert through(ports, 5)["member"] == 11
    wired.modify(member(names, "members", 1, "set_member", 33))
    assert through(ports, 5)["member"] == 33
    wired.modify(pointing(names, "member_t", 5, to_member=2))
    assert through(ports, 5)["member"] == 22
    assert wired.read(pointing(names, "member_t", 5)) == [pointing(names, "member_t", 5, to_member=2)]
    assert len(wired.read(Entity(action_profile_member={}))) == 2
    assert wired.read(member(names, "members", 2, "set_member", 0)) == [member(names, "members", 2, "set_member", 22)]

    assert code_of(wired.delete, member(names, "members", 2, "set_member", 0)) != 0  # in use
    wired.delete(member(names, "members", 1, "set_member", 0))
    assert code_of(wired.insert, member(names, "members", 2, "set_member", 1)) == ALREADY_EXISTS
    assert code_of(wired.modify, member(names, "members", 9, "set_member", 1)) == NOT_FOUND
    assert code_of(wired.insert, member(names, "members", 3, "set_group", 1)) == INVALID_ARGUMENT
    assert code_of(wired.insert, member(names, "members", 3, "set_member", 1 << 16)) == OUT_OF_RANGE
    plain = names.entry("member_t", {1: 6}, ("set_member", [1]))
    assert code_of(wired.insert, plain) == INVALID_ARGUMENT
    assert code_of(wired.insert, pointing(names, "member_t", 6, to_group=1)) == INVALID_ARGUMENT


def test_a_full_profile_says_so(wired: RawClient, names: Names) -> None:
    wired.insert(*[member(names, "members", number, "set_member", 1) for number in range(1, 9)])
    assert code_of(wired.insert, member(names, "members", 9, "set_member", 1)) == RESOURCE_EXHAUSTED


def test_groups_spread_flows_over_their_members(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(*[member(names, "groups", number, "set_group", 100 + number) for number in (1, 2, 3)])
    wired.insert(group(names, 7, (1, 1), (2, 2), max_size=8))
    wired.insert(pointing(names, "group_t", 5, to_group=7))
    assert wired.read(Entity(action_profile_group={})) == [group(names, 7, (1, 1), (2, 2), max_size=8)]
    spread = {src: through(ports, 5, SRC + src)["group"] for src in range(40)}
    assert set(spread.values()) == {101, 102}
    assert spread == {src: through(ports, 5, SRC + src)["group"] for src in range(40)}  # a flow stays
    wired.modify(group(names, 7, (3, 1), max_size=8))
    assert {through(ports, 5, SRC + src)["group"] for src in range(10)} == {103}

    assert code_of(wired.insert, group(names, 8, (9, 1))) == NOT_FOUND
    assert code_of(wired.insert, group(names, 8, (1, 0))) == INVALID_ARGUMENT
    assert code_of(wired.insert, group(names, 8, (1, 1), (1, 1))) == INVALID_ARGUMENT
    assert code_of(wired.insert, group(names, 7)) == ALREADY_EXISTS
    assert code_of(wired.delete, group(names, 8)) == NOT_FOUND
    wired.delete(pointing(names, "group_t", 5))
    wired.delete(group(names, 7))
    assert wired.read(Entity(action_profile_group={})) == []


def test_one_shot_action_sets(wired: RawClient, ports: FramePorts, names: Names) -> None:
    entity = names.entry("group_t", {1: 5})
    for value, weight in ((201, 1), (202, 3)):
        one = entity.table_entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
        one.action.action_id = names.action_id("set_group")
        one.action.params.add(param_id=1, value=as_bytes(value))
    wired.insert(entity)
    assert wired.read(names.entry("group_t", {1: 5})) == [entity]
    assert {through(ports, 5, SRC + src)["group"] for src in range(40)} == {201, 202}
    assert wired.read(Entity(action_profile_member={})) == []  # they belong to the entry
    one_member = member(names, "groups", 1, "set_group", 1)
    assert code_of(wired.insert, one_member) == INVALID_ARGUMENT  # a profile is used in one style at a time
    assert code_of(wired.insert, group(names, 1)) == INVALID_ARGUMENT
    first = entity.table_entry.action.action_profile_action_set.action_profile_actions[0]
    first.weight = 0
    assert code_of(wired.modify, entity) == INVALID_ARGUMENT
    first.weight, first.watch_port = 1, as_bytes(300)
    assert code_of(wired.modify, entity) == INVALID_ARGUMENT
    first.watch_port = as_bytes(4)
    wired.modify(entity)
    wired.delete(entity)
    wired.insert(one_member)
    assert code_of(wired.insert, entity) == INVALID_ARGUMENT
    assert code_of(wired.insert, member(names, "groups", 0, "set_group", 1)) == INVALID_ARGUMENT
    assert code_of(wired.insert, group(names, 0)) == INVALID_ARGUMENT
    wired.delete(one_member)
    wired.insert(entity)


def test_watched_ports_that_are_down_are_passed_over(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(*[member(names, "groups", number, "set_group", 100 + number) for number in (1, 2)])
    watching = group(names, 7, (1, 1), (2, 1))
    for number, one in enumerate(watching.action_profile_group.members, 3):
        one.watch_port = bytes([number])
    wired.insert(watching)
    assert wired.read(Entity(action_profile_group={})) == [watching]
    for none in (5, 300, 511, 512):
        watching.action_profile_group.members[0].watch_port = as_bytes(none)
        assert code_of(wired.modify, watching) == INVALID_ARGUMENT, none
    watching.action_profile_group.members[0].watch_port = as_bytes(510)  # that of the CPU
    wired.modify(watching)
    watching.action_profile_group.members[0].watch_port = as_bytes(3)
    wired.modify(watching)
    wired.insert(pointing(names, "group_t", 5, to_group=7))
    assert {through(ports, 5, SRC + src)["group"] for src in range(40)} == {101, 102}
    ports.set_link(3, up=False)
    deadline = time.monotonic() + 60
    while {through(ports, 5, SRC + src)["group"] for src in range(40)} != {102}:
        assert time.monotonic() < deadline, "port 3 is down, but its member is still chosen"


def meter(names: Names, index: int | None, config: tuple[int, int, int, int] | None) -> Entity:
    entity = Entity()
    entity.meter_entry.meter_id = names.meter_id("flow_meter")
    if index is not None:
        entity.meter_entry.index.index = index
    if config is not None:
        cir, cburst, pir, pburst = config
        entity.meter_entry.config.CopyFrom(p4runtime_pb2.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst))
    return entity


def test_meters_color_frames(wired: RawClient, ports: FramePorts, names: Names) -> None:
    limits = (1, 3, 1, 5)  # in packets: 3 green, then yellow up to 5 in all, then red
    wired.modify(meter(names, 2, limits))
    assert wired.read(meter(names, 2, None)) == [meter(names, 2, limits)]
    assert wired.read(meter(names, None, None)) == [
        meter(names, index, limits if index == 2 else None) for index in range(4)
    ]
    colors = [through(ports, 2)["color"] for _ in range(10)]
    assert colors[:3] == [GREEN] * 3
    assert YELLOW in colors[3:5] and RED in colors
    assert through(ports, 1)["color"] == GREEN
    wired.modify(meter(names, 2, None))  # back to the default: all green
    assert {through(ports, 2)["color"] for _ in range(10)} == {GREEN}

    assert code_of(wired.modify, meter(names, 4, limits)) == OUT_OF_RANGE
    assert code_of(wired.modify, meter(names, 1, (-1, 0, 0, 0))) == INVALID_ARGUMENT
    assert code_of(wired.insert, meter(names, 1, limits)) == INVALID_ARGUMENT


def test_meters_count_each_color(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.modify(meter(names, 2, (1, 3, 1, 5)))
    colors = [through(ports, 2)["color"] for _ in range(10)]
    ask = meter(names, 2, None)
    ask.meter_entry.counter_data.SetInParent()
    (read,) = wired.read(ask)
    counts = read.meter_entry.counter_data
    size = len(extras_probe(SRC, 2))
    for color, count in ((GREEN, counts.green), (YELLOW, counts.yellow), (RED, counts.red)):
        assert (count.packet_count, count.byte_count) == (colors.count(color), colors.count(color) * size)
    assert not wired.read(meter(names, 2, None))[0].meter_entry.HasField("counter_data")

    wired.modify(meter(names, 2, (1, 3, 1, 5)))  # a new configuration, the counts go on
    assert wired.read(ask)[0].meter_entry.counter_data == counts
    wrong = meter(names, 2, (1, 3, 1, 5))
    wrong.meter_entry.counter_data.red.packet_count = 1
    assert code_of(wired.modify, wrong) == INVALID_ARGUMENT
    wired.modify(ask)  # no configuration and cleared counts
    through(ports, 2)
    (read,) = wired.read(ask)
    assert read.meter_entry.counter_data.green.packet_count == 1  # unlimited is green
    assert read.meter_entry.counter_data.red.packet_count == 0
    eburst = meter(names, 2, (1, 3, 1, 5))
    eburst.meter_entry.config.eburst = 1
    assert code_of(wired.modify, eburst) == INVALID_ARGUMENT


def test_direct_meters_count_each_color(wired: RawClient, ports: FramePorts, names: Names) -> None:
    entity = names.entry("metered_t", {1: 5}, ("color_it", []))
    wired.insert(entity)
    for _ in range(3):
        through(ports, 5)
    ask = names.entry("metered_t", {1: 5}, ("color_it", []))
    ask.table_entry.meter_counter_data.SetInParent()
    assert wired.read(ask)[0].table_entry.meter_counter_data.green.packet_count == 3
    direct = Entity()
    direct.direct_meter_entry.table_entry.CopyFrom(names.entry("metered_t", {1: 5}).table_entry)
    direct.direct_meter_entry.counter_data.SetInParent()
    assert wired.read(direct)[0].direct_meter_entry.counter_data.green.packet_count == 3
    wired.modify(entity)
    assert wired.read(ask)[0].table_entry.meter_counter_data.green.packet_count == 3
    wired.modify(direct)
    assert wired.read(ask)[0].table_entry.meter_counter_data.green.packet_count == 0


def test_direct_meters(wired: RawClient, ports: FramePorts, names: Names) -> None:
    entity = names.entry("metered_t", {1: 5}, ("color_it", []))
    config = p4runtime_pb2.MeterConfig(cir=1, cburst=1, pir=1, pburst=1)
    entity.table_entry.meter_config.CopyFrom(config)
    wired.insert(entity)
    assert RED in [through(ports, 5)["direct_color"] for _ in range(5)]
    assert wired.read(entity) == [entity]
    assert not wired.read(names.entry("metered_t", {1: 5}))[0].table_entry.HasField("meter_config")

    direct = Entity()
    direct.direct_meter_entry.table_entry.table_id = names.table_id("metered_t")
    direct.direct_meter_entry.table_entry.match.extend(entity.table_entry.match)
    direct.direct_meter_entry.config.CopyFrom(config)
    assert wired.read(direct) == [direct]
    direct.direct_meter_entry.ClearField("config")
    wired.modify(direct)
    assert {through(ports, 5)["direct_color"] for _ in range(5)} == {GREEN}
    assert wired.read(direct) == [direct]


def enable(names: Names, *, timeout_ns: int = 0, size: int = 0, ack_ns: int = 0) -> Entity:
    entity = Entity()
    entity.digest_entry.digest_id = names.digest_id("learned_t")
    config = entity.digest_entry.config
    config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns = timeout_ns, size, ack_ns
    return entity


def learned(message: p4runtime_pb2.StreamMessageResponse) -> list[tuple[int, int, int]]:
    assert message.HasField("digest")
    return [
        tuple(int.from_bytes(field.bitstring, "big") for field in data.struct.members)  # type: ignore[misc]
        for data in message.digest.data
    ]


def test_digests_come_in_lists_without_repeats(wired: RawClient, ports: FramePorts, names: Names) -> None:
    through(ports, 1)  # not enabled yet: nothing is sent
    config = enable(names, timeout_ns=3600 * 10**9, size=3, ack_ns=3600 * 10**9)
    wired.insert(config)
    assert wired.read(Entity(digest_entry={})) == [config]
    for flow in (1, 1, 2, 2, 3):
        through(ports, flow)
    first = wired.receive()
    assert learned(first) == [(SRC, 1, 1), (SRC, 1, 2), (SRC, 1, 3)]
    for flow in (1, 2, 3, 4, 5, 6):  # the first three wait for their acknowledgement
        through(ports, flow)
    second = wired.receive()
    assert learned(second) == [(SRC, 1, 4), (SRC, 1, 5), (SRC, 1, 6)]
    assert second.digest.list_id != first.digest.list_id
    assert second.digest.timestamp >= first.digest.timestamp > 0

    acknowledgement = p4runtime_pb2.StreamMessageRequest()
    acknowledgement.digest_ack.digest_id = first.digest.digest_id
    acknowledgement.digest_ack.list_id = first.digest.list_id
    wired.send(acknowledgement)
    # Sent on the same stream after it, and answered: so the acknowledgement has been handled.
    assert wired.arbitrate() == 0
    for flow in (4, 5, 6, 1, 2, 3):
        through(ports, flow)
    assert learned(wired.receive()) == [(SRC, 1, 1), (SRC, 1, 2), (SRC, 1, 3)]


def test_an_acknowledgement_of_an_unknown_digest_is_reported(wired: RawClient) -> None:
    request = p4runtime_pb2.StreamMessageRequest()
    request.digest_ack.digest_id, request.digest_ack.list_id = 12345, 9
    wired.send(request)
    error = wired.receive().error
    assert error.canonical_code == INVALID_ARGUMENT
    assert error.digest_list_ack.digest_list_ack == request.digest_ack


def test_digests_wait_no_longer_than_asked(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(enable(names, timeout_ns=10**6, size=100))
    through(ports, 9)
    assert learned(wired.receive()) == [(SRC, 1, 9)]
    wired.modify(enable(names))  # at once, each
    through(ports, 9)
    assert learned(wired.receive()) == [(SRC, 1, 9)]


def test_digests_may_wait_for_ever_for_a_full_list(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(enable(names, timeout_ns=(1 << 63) - 1, size=2))
    through(ports, 1)
    through(ports, 2)
    assert learned(wired.receive()) == [(SRC, 1, 1), (SRC, 1, 2)]


def test_more_digests_than_a_stream_takes_come_in_several_lists(
    wired: RawClient, ports: FramePorts, names: Names
) -> None:
    wired.insert(enable(names, timeout_ns=3600 * 10**9, size=1 << 30, ack_ns=3600 * 10**9))
    for flow in range(6_000):
        through(ports, flow)
    first = wired.receive()
    assert learned(first) == [(SRC, 1, flow) for flow in range(len(first.digest.data))]


def test_digests_that_nobody_acknowledges_are_bounded(wired: RawClient, ports: FramePorts, names: Names) -> None:
    """The oldest of them are forgotten, not the newest: only those may come again."""
    size, lists = 1_000, 20  # more than 1 MiB of them
    wired.insert(enable(names, timeout_ns=3600 * 10**9, size=size, ack_ns=3600 * 10**9))
    for number in range(lists):
        flows = range(number * size, (number + 1) * size)
        for flow in flows:
            through(ports, flow)
        assert learned(wired.receive()) == [(SRC, 1, flow) for flow in flows]
    newest = range((lists - 1) * size, lists * size)
    for flow in [*newest, *range(size)]:
        through(ports, flow)
    assert learned(wired.receive()) == [(SRC, 1, flow) for flow in range(size)]


def test_digest_entries_follow_their_rules(wired: RawClient, ports: FramePorts, names: Names) -> None:
    assert code_of(wired.modify, enable(names)) == NOT_FOUND
    assert code_of(wired.delete, enable(names)) == NOT_FOUND
    assert code_of(wired.insert, enable(names, size=-1)) == INVALID_ARGUMENT
    wired.insert(enable(names))
    assert code_of(wired.insert, enable(names)) == ALREADY_EXISTS
    wired.delete(enable(names))
    assert wired.read(Entity(digest_entry={})) == []
    through(ports, 3)
    assert wired.arbitrate() == 0  # the answer to this is the only message
    assert not wired.has_message()


def value_set(names: Names, *types: int) -> Entity:
    entity = Entity()
    entity.value_set_entry.value_set_id = names.value_set_id("probe_types")
    for one in types:
        entity.value_set_entry.members.add().match.add(field_id=1).exact.value = as_bytes(one)
    return entity


def test_value_sets_steer_the_parser(wired: RawClient, ports: FramePorts, names: Names) -> None:
    learned_by_type = b"\x88\xb6"
    wired.insert(enable(names))
    ports.send(1, extras_probe(SRC, 1, learned_by_type))  # not a probe yet: no digest
    through(ports, 5)
    assert learned(wired.receive()) == [(SRC, 1, 5)]
    wired.modify(value_set(names, 0x88B6, 0x1234))
    assert wired.read(Entity(value_set_entry={})) == [value_set(names, 0x88B6, 0x1234)]
    ports.send(1, extras_probe(SRC, 2, learned_by_type))
    assert learned(wired.receive()) == [(SRC, 1, 2)]
    wired.modify(value_set(names))
    ports.send(1, extras_probe(SRC, 3, learned_by_type))
    through(ports, 4)
    assert learned(wired.receive()) == [(SRC, 1, 4)]

    assert code_of(wired.modify, value_set(names, 1, 2, 3, 4, 5)) == RESOURCE_EXHAUSTED
    assert code_of(wired.modify, value_set(names, 1, 1)) == ALREADY_EXISTS
    assert code_of(wired.modify, value_set(names, 1 << 16)) == OUT_OF_RANGE
    assert code_of(wired.insert, value_set(names, 1)) == INVALID_ARGUMENT


def test_idle_entries_are_reported_and_hits_keep_them_alive(wired: RawClient, names: Names) -> None:
    entity = names.entry("idle_t", {1: 5}, ("seen", [9]))
    entity.table_entry.idle_timeout_ns = 60_000_000
    entity.table_entry.metadata = b"mine"
    never = names.entry("idle_t", {1: 6}, ("seen", [8]))
    wired.insert(entity, never)
    assert wired.read(names.entry("idle_t", {1: 5})) == [entity]
    notice = wired.receive().idle_timeout_notification
    (idle,) = notice.table_entry
    assert idle.match == entity.table_entry.match
    assert idle.metadata == b"mine"
    assert idle.idle_timeout_ns == 60_000_000
    assert notice.timestamp > 0
    again = wired.receive().idle_timeout_notification  # a whole timeout later, once more
    assert again.timestamp - notice.timestamp >= 60_000_000

    wanted = names.entry("idle_t", {1: 6})
    wanted.table_entry.time_since_last_hit.SetInParent()
    assert wired.read(wanted)[0].table_entry.time_since_last_hit.elapsed_ns > 0


def test_a_timeout_shorter_than_the_clocks_step_is_one(wired: RawClient, names: Names) -> None:
    entity = names.entry("idle_t", {1: 5}, ("seen", [9]))
    entity.table_entry.idle_timeout_ns = 1
    wired.insert(entity)
    (idle,) = wired.receive().idle_timeout_notification.table_entry
    assert idle.idle_timeout_ns == 1


def test_a_hit_resets_the_idle_time(wired: RawClient, ports: FramePorts, names: Names) -> None:
    entity = names.entry("idle_t", {1: 5}, ("seen", [9]))
    entity.table_entry.idle_timeout_ns = 3600 * 10**9
    wired.insert(entity)
    wanted = names.entry("idle_t", {1: 5})
    wanted.table_entry.time_since_last_hit.SetInParent()

    def elapsed() -> int:
        return wired.read(wanted)[0].table_entry.time_since_last_hit.elapsed_ns

    while elapsed() < 20_000_000:
        pass
    before = time.monotonic_ns()
    assert through(ports, 5)["idle"] == 9
    assert elapsed() <= time.monotonic_ns() - before + 2_000_000
    negative = names.entry("idle_t", {1: 7}, ("seen", [1]))
    negative.table_entry.idle_timeout_ns = -1
    assert code_of(wired.insert, negative) == INVALID_ARGUMENT
    default = names.entry("idle_t", action=("seen", [1]), default=True)
    default.table_entry.idle_timeout_ns = 1
    assert code_of(wired.modify, default) == INVALID_ARGUMENT
