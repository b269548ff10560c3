"""The P4Runtime client against a server in memory: values, names, and above all what goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake, entity_key
from google.protobuf import text_format
from google.rpc import code_pb2
from running_controller import until

from catchment.controlplane.client import MulticastGroup, P4Info, Replica, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.client.aio import AsyncSwitchClient
from catchment.controlplane.client.cells import RegisterCell
from catchment.controlplane.client.channel import open_async_channel, open_channel
from catchment.controlplane.client.entries import from_message, to_message
from catchment.controlplane.client.requests import batches, write_request
from catchment.controlplane.controller.certificates import make
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.host.membership import Credentials
from catchment.sim.lab.held_address import HeldAddress
from catchment.wire.generated import p4data_pb2, p4info_pb2, p4runtime_pb2

INFO = P4Info(fake_p4info())


def l2_entry(number: int, port: int = 3) -> TableEntry:
    return TableEntry("l2", {"dst": f"02:00:00:00:00:{number:02x}"}, "forward", {"port": port})


def random_mac(rng: random.Random) -> str:
    return ":".join(f"{rng.randrange(256):02x}" for _ in range(6))


# Updates


def test_signs_say_what_to_do_and_updates_keep_their_order(client: SwitchClient) -> None:
    client.write(+l2_entry(1), +MulticastGroup(7, (Replica(1), Replica(2))), ~l2_entry(1, port=4), +l2_entry(2))
    assert {(e.match["dst"], e.params["port"]) for e in client.each(TableEntry("l2"))} == {
        ("02:00:00:00:00:01", 4),
        ("02:00:00:00:00:02", 3),
    }
    assert list(client.each(MulticastGroup())) == [MulticastGroup(7, (Replica(1), Replica(2)))]
    client.write(-l2_entry(1), -MulticastGroup(7))
    assert [e.match["dst"] for e in client.each(TableEntry("l2"))] == ["02:00:00:00:00:02"]
    assert not list(client.each(MulticastGroup()))


def test_a_wrong_update_leaves_the_others_unsent(client: SwitchClient, fake: RunningFake) -> None:
    with pytest.raises(SwitchError, match="70000 does not fit"):
        client.write(*(+l2_entry(n) for n in range(100)), +l2_entry(100, port=70000))
    assert "write" not in fake.switch.log


def test_thousands_of_values_of_one_shape_are_encoded_each_by_itself(rng: random.Random) -> None:
    """More than what is remembered of them, numbers as text among them, and of every length."""
    numbers = [rng.randrange(1 << rng.randrange(1, 49)) for _ in range(5000)]
    spelled = [rng.choice((n, str(n), hex(n), ":".join(f"{b:02X}" for b in n.to_bytes(6, "big")))) for n in numbers]
    for number, value in [*zip(numbers, spelled, strict=True)] * 2:
        message = to_message(TableEntry("l2", {"dst": value}, "forward", {"port": number % 500}), INFO)
        (field,), (param,) = message.match, message.action.action.params
        assert (field.field_id, param.param_id) == (1, 1)
        for encoded, meant in ((field.exact.value, number), (param.value, number % 500)):
            assert encoded == meant.to_bytes(max(1, (meant.bit_length() + 7) // 8), "big")


def test_a_request_has_its_updates_whatever_their_size(rng: random.Random) -> None:
    """Entities of other kinds among entries, and messages whose lengths take one, two and three bytes."""
    sizes = (0, 40, 99, 100, 127, 128, 200, 900, 1000, 1023, 1024, 1025, 2000, 16_300, 16_384, 70_000)
    entries = [replace(l2_entry(n), metadata=rng.randbytes(size)) for n, size in enumerate(sizes)]
    group = MulticastGroup(7, (Replica(1), Replica(2)))
    updates = (*(+entry for entry in entries), ~entries[1], -entries[2], +group)
    [batch] = batches(updates, INFO)
    request = p4runtime_pb2.WriteRequest.FromString(write_request(3, (1, 1 << 60), batch.serialized))
    assert (request.device_id, request.election_id.high, request.election_id.low) == (3, 1, 1 << 60)
    assert [update.type for update in request.updates] == [1] * len(entries) + [2, 3, 1]
    written = [update.entity.table_entry for update in request.updates[:-1]]
    assert written[: len(entries)] == [to_message(entry, INFO) for entry in entries]
    assert written[len(entries)] == to_message(entries[1], INFO)
    assert written[-1] == to_message(entries[2], INFO, with_action=False)
    assert MulticastGroup.decode(request.updates[-1].entity, INFO) == group


# Entries and values


def test_entries_come_back_as_they_were_written(client: SwitchClient, rng: random.Random) -> None:
    written = {}
    for gen in range(1, 40):
        params = {
            "dst_mac": random_mac(rng),
            "dst_ip": f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}",
            "dst_udp": rng.randrange(1 << 16),
            "src_mac": random_mac(rng),
            "src_ip": "0.0.0.0" if gen == 7 else f"192.168.0.{gen}",
        }
        written[gen] = TableEntry("receivers", {"gen": gen, "port": rng.randrange(512)}, "rewrite", params)
    client.insert(*written.values())
    assert {int(e.match["gen"]): e for e in client.read("receivers")} == written


@pytest.mark.parametrize(
    ("match", "shown"),
    [
        ({"dst_ip": "10.1.2.3/8"}, {"ipv4.dst_ip": "10.0.0.0/8"}),
        ({"ipv4.dst_ip": "10.1.2.3"}, {"ipv4.dst_ip": "10.1.2.3/32"}),
        ({"dst_ip": "0.0.0.0/0"}, {}),
        ({"flags": "0x15&&&0x0f"}, {"flags": "5&&&0xf"}),
        ({"flags": 3}, {"flags": "3&&&0xff"}),
        ({"flags": "1&&&0"}, {}),
        ({"port": "10..20"}, {"port": "10..20"}),
        ({"port": 10}, {"port": "10..10"}),
        ({"vlan": 5}, {"vlan": 5}),
        ({"vlan": "*"}, {}),
    ],
)
def test_every_match_kind(match: dict[str, int | str], shown: dict[str, int | str]) -> None:
    entry = TableEntry("everything", match, "forward", {"port": 1}, priority=4)
    assert from_message(to_message(entry, INFO), INFO).match == shown


def test_what_is_read_can_be_written_again() -> None:
    entry = TableEntry("everything", {"dst_ip": "10.0.0.0/8", "flags": "5&&&0xf", "port": "1..2", "vlan": 9}, "forward",
                       {"port": 1}, priority=4)  # fmt: skip
    message = to_message(entry, INFO)
    assert to_message(from_message(message, INFO), INFO) == message


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (TableEntry("jbos", {}, "x"), r"no table 'jbos' .*In\.jobs\.jobs"),
        (TableEntry("jobs", {"gen": 1}, "root"), r"jobs\.port: an exact key field needs a value"),
        (TableEntry("jobs", {"gen": 1, "prot": 1}, "root"), r"no key field 'prot'; its key is: gen, port"),
        (TableEntry("jobs", {"gen": 1, "port": 1}, "flood"), r"no action 'flood' in table jobs; there are: .*worker"),
        (TableEntry("jobs", {"gen": 1, "port": 1}), "no action given"),
        (
            TableEntry("jobs", {"gen": 1, "port": 1}, "root", {"mode": 1, "jbo": 2, "group": 3}),
            r"root takes \(mode, job, group, src_ip, src_udp\); unknown: jbo; missing: job",
        ),
        (TableEntry("jobs", {"gen": 65536, "port": 1}, "root"), r"jobs\.gen: 65536 does not fit in 16 bits"),
        (TableEntry("jobs", {"gen": -1, "port": 1}, "root"), "does not fit"),
        (TableEntry("jobs", {"gen": "ten", "port": 1}, "root"), r"'ten' is neither a number .* nor an IPv4 address"),
        (TableEntry("own_addresses", {"target": "10.0.0.300"}, "answer"), "not an IPv4 address"),
        (TableEntry("everything", {"port": "20..10"}, "forward"), "empty range"),
        (TableEntry("everything", {"dst_ip": "10.0.0.0/33"}, "forward"), "prefix length 33 is longer"),
    ],
)
def test_mistakes_are_named(entry: TableEntry, complaint: str) -> None:
    with pytest.raises(SwitchError, match=complaint):
        to_message(entry, INFO)


def test_ambiguous_names_list_the_candidates() -> None:
    with pytest.raises(SwitchError, match=r"ambiguous.*Eg\.faults\.maybe_drop, In\.faults\.maybe_drop"):
        INFO.find("action", "maybe_drop")
    table = INFO.find("table", "egress_faults")
    assert INFO.find_action(table, "maybe_drop").preamble.name == "Eg.faults.maybe_drop"


def test_modify_delete_and_defaults(client: SwitchClient) -> None:
    client.insert(l2_entry(1), l2_entry(2))
    client.modify(l2_entry(1, port=9))
    client.delete(TableEntry("l2", l2_entry(2).match))
    assert client.read("l2") == [l2_entry(1, port=9)]
    client.set_default("l2", "flood", {"group": 5})
    default = client.read_default("l2")
    assert default is not None
    assert (default.action, default.params) == ("flood", {"group": 5})
    assert len(client.read("l2")) == 1, "the default action is not an entry"


def test_groups(client: SwitchClient) -> None:
    client.set_group(2, [3, 1, 1])
    assert client.groups() == {2: [1, 3]}
    client.set_group(2, [4])
    client.set_group(3, [5])
    client.delete_groups([3])
    assert client.groups() == {2: [4]}


def test_counters(client: SwitchClient, fake: RunningFake) -> None:
    fake.switch.counters = {0: 0, 8: 12}
    assert {c.index: c.packets for c in client.counter("drops")} == {0: 0, 8: 12}
    entry = TableEntry(
        "jobs", {"gen": 7, "port": 2}, "root", {"mode": 1, "job": 0, "group": 2, "src_ip": 1, "src_udp": 1}
    )
    client.insert(entry)
    (key,) = fake.switch.entities
    fake.switch.direct[key] = 99
    (counted,) = client.direct_counters("jobs")
    assert (counted.match, counted.packets) == ({"gen": 7, "port": 2}, 99)


def test_registers(client: SwitchClient, fake: RunningFake) -> None:
    client.write_register("tag", 3, 0xAABBCCDDEEFF)
    assert client.register("tag", 3) == {3: 0xAABBCCDDEEFF}
    fake.switch.no_registers = True
    with pytest.raises(SwitchError, match=r"s1 .*register tag failed: UNIMPLEMENTED.*target does not offer") as info:
        client.register("tag")
    assert info.value.code == "UNIMPLEMENTED"


# Refusals


def test_each_refused_update_is_reported_and_only_those(client: SwitchClient, fake: RunningFake) -> None:
    """p4runtime-shell's own client never returns from a batch whose first update is fine."""
    client.insert(l2_entry(2), l2_entry(4))
    with pytest.raises(SwitchError) as info:
        client.insert(*(l2_entry(n) for n in range(1, 6)))
    assert [(f.index, f.code) for f in info.value.failures] == [(1, "ALREADY_EXISTS"), (3, "ALREADY_EXISTS")]
    assert "s1" in str(info.value)
    assert "2 of 5 update(s) refused" in str(info.value)
    assert "insert l2[dst=02:00:00:00:00:04]: ALREADY_EXISTS: entry exists" in str(info.value)
    assert len(client.read("l2")) == 5, "the other updates of the batch stay"


def test_unknown_status_codes_are_shown_as_they_are(client: SwitchClient, fake: RunningFake) -> None:
    entity = p4runtime_pb2.Entity(table_entry=to_message(l2_entry(1), INFO))
    fake.switch.refuse[entity_key(entity)] = (77, "")
    with pytest.raises(SwitchError, match="code 77: no reason given"):
        client.insert(l2_entry(1))


def test_large_batches_name_the_right_update(client: SwitchClient, fake: RunningFake) -> None:
    entries = [TableEntry("l2", {"dst": n}, "forward", {"port": 1}) for n in range(1, 501)]
    last = p4runtime_pb2.Entity(table_entry=to_message(entries[432], INFO))
    fake.switch.refuse[entity_key(last)] = (code_pb2.RESOURCE_EXHAUSTED, "table full")
    with pytest.raises(SwitchError, match=r"dst=433\]: RESOURCE_EXHAUSTED: table full"):
        client.insert(*entries)


# Connections


def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(SwitchError, match=rf"switch s9 \({address}\): no P4Runtime server answers"):
            SwitchClient.connect(address, name="s9", timeout=0.3)


def test_something_else_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SwitchError, match="no P4Runtime server answers"):
            SwitchClient.connect(address, name="s9", timeout=0.3)


SETTINGS, GOAWAY = bytes.fromhex("000000 04 00 00000000"), bytes.fromhex("000008 07 00 00000000 00000000 00000000")


def test_a_switch_that_ends_a_connection_at_once_and_comes_back_is_reached() -> None:
    """The end of a connection that stood leaves a channel idle, not looking for another."""
    with HeldAddress() as held, contextlib.ExitStack() as stack:

        def restart() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(SETTINGS + GOAWAY)
                connection.recv(1 << 16)
            server.close()
            stack.enter_context(RunningFake(FakeSwitch(), held.address))

        server = socket.create_server(("127.0.0.1", held.port))
        restarting = threading.Thread(target=restart)
        restarting.start()
        SwitchClient.connect(held.address, name="s1", timeout=60.0).close()
        restarting.join()


def test_a_switch_that_goes_while_it_is_asked_is_asked_again() -> None:
    """Both clients ask until it answers; a switch that does not know the call has answered, too."""
    asked = []

    class Coming(FakeSwitch):
        def Capabilities(self, request: Any, context: Any) -> Any:  # noqa: N802
            asked.append(request)
            context.abort(grpc.StatusCode.UNIMPLEMENTED if len(asked) % 3 == 0 else grpc.StatusCode.UNAVAILABLE, "")

    async def use() -> None:
        async with AsyncSwitchClient(fake.address, timeout=60.0):
            pass

    with RunningFake(Coming()) as fake:
        SwitchClient.connect(fake.address, timeout=60.0).close()
        assert len(asked) == 3
        asyncio.run(use())
        assert len(asked) == 6


def test_a_switch_that_takes_a_connection_and_answers_nothing_is_not_there() -> None:
    class Mute(FakeSwitch):
        def Capabilities(self, request: Any, context: Any) -> Any:  # noqa: N802
            self.release.wait(120)
            return p4runtime_pb2.CapabilitiesResponse()

    with RunningFake(Mute()) as fake, pytest.raises(SwitchError, match=NOT_THERE):
        SwitchClient.connect(fake.address, timeout=0.3, read_only=True)


def test_no_client_has_grpc_watch_its_channel(fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch may lose its last event, for which the closing of the channel then waits for ever."""
    with open_channel(fake.address) as channel:
        monkeypatch.setattr(type(channel), "subscribe", lambda *_, **__: pytest.fail("a channel is watched"))
    SwitchClient.connect(fake.address, timeout=60.0).close()


NOT_THERE = "no P4Runtime server answers"


def test_a_switch_that_never_arbitrates_is_an_error_not_an_exit() -> None:
    said = NOT_THERE
    with RunningFake(FakeSwitch(no_arbitration=True)) as fake:
        for _ in range(30):  # on a busy machine the connection itself may take longer
            with pytest.raises(SwitchError) as info:
                SwitchClient.connect(fake.address, name="s1", timeout=2.0)
            said = str(info.value)
            if NOT_THERE not in said:
                break
    assert "no answer to the request to become its controller" in said


def test_a_wrong_device_id_says_what_the_switch_said(fake: RunningFake) -> None:
    with pytest.raises(SwitchError, match="no device 9"):
        SwitchClient.connect(fake.address, 9, name="s1", timeout=60.0)


def soon_impatient(fake: RunningFake) -> SwitchClient:
    """A client whose requests have two seconds; its connection may take longer on a busy machine."""
    for _ in range(29):
        with contextlib.suppress(SwitchError):
            return SwitchClient.connect(fake.address, name="s1", p4info=INFO, timeout=2.0)
    return SwitchClient.connect(fake.address, name="s1", p4info=INFO, timeout=2.0)


def test_a_switch_that_hangs_runs_into_the_deadline(fake: RunningFake) -> None:
    with soon_impatient(fake) as client:
        fake.switch.silent = True
        requests = (lambda: client.insert(l2_entry(1)), lambda: client.read("l2"), client.groups)
        with ThreadPoolExecutor(len(requests)) as threads:
            for outcome in [threads.submit(request) for request in requests]:
                with pytest.raises(SwitchError, match=r"s1.*DEADLINE_EXCEEDED.*did not answer in time"):
                    outcome.result()
        fake.switch.release.set()


def test_a_switch_that_dies_is_named(fake: RunningFake) -> None:
    with SwitchClient.connect(fake.address, name="s1", p4info=INFO, timeout=60.0) as client:
        gone = threading.Event()
        client.call_when_lost(gone.set)
        fake.stop()
        assert gone.wait(60)
        with pytest.raises(SwitchError, match=r"switch s1 .*(UNAVAILABLE|DEADLINE_EXCEEDED)"):
            client.insert(l2_entry(1))


def test_a_read_that_is_under_way_when_its_switch_ends_comes_to_an_end() -> None:
    """gRPC's own retries let some of them wait for ever; one of several, so that many are under way."""

    def read(client: SwitchClient) -> None:
        with contextlib.suppress(SwitchError):
            while True:
                client.read("l2")

    for _ in range(10):
        with RunningFake(FakeSwitch(p4info=fake_p4info())) as fake:
            client = SwitchClient.connect(fake.address, name="s1", p4info=INFO, timeout=60.0)
            readers = [threading.Thread(target=read, args=(client,), daemon=True) for _ in range(4)]
            for reader in readers:
                reader.start()
            until(lambda fake=fake: fake.switch.log.count("read") >= 8, "they read")
            fake.stop()
            for reader in readers:
                reader.join(30)
            assert not any(reader.is_alive() for reader in readers), "a read waits for a switch that is gone"
            client.close()


def test_every_channel_that_carries_streams_leaves_retries_to_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those to switches, of both clients and with TLS or without, and that of a member to its controller."""
    make(tmp_path, ["w0"])
    opened: list[dict[str, object]] = []
    for module in (grpc, grpc.aio):
        monkeypatch.setattr(module, "insecure_channel", lambda _, options=(): opened.append(dict(options)))
        monkeypatch.setattr(module, "secure_channel", lambda _, __, options=(): opened.append(dict(options)))
    for address in ("127.0.0.1:9", f"tls:{tmp_path}@127.0.0.1:9"):
        open_channel(address)
        open_async_channel(address)
    Credentials.of(tmp_path, "w0").channel("127.0.0.1:9")
    assert [options["grpc.enable_retries"] for options in opened] == [0] * 5


def test_the_newest_controller_wins_and_the_older_one_takes_over_again(fake: RunningFake, client: SwitchClient) -> None:
    with SwitchClient.connect(fake.address, name="s1", timeout=60.0) as newer:
        newer.insert(l2_entry(1))
        client.insert(l2_entry(2))
        newer.insert(l2_entry(3))
    assert len(client.read("l2")) == 3


def test_a_stale_notice_is_not_taken_for_the_answer(fake: RunningFake) -> None:
    fake.switch.stale_notice = True
    with SwitchClient.connect(fake.address, name="s1", timeout=60.0) as client:
        client.insert(l2_entry(1))


def test_read_only_leaves_the_primary_alone(fake: RunningFake, client: SwitchClient) -> None:
    before = fake.switch.primary
    with SwitchClient.connect(fake.address, name="s1", read_only=True, timeout=60.0) as looker:
        assert looker.read("l2") == []
        with pytest.raises(SwitchError, match="opened for reading"):
            looker.insert(l2_entry(1))
    assert fake.switch.primary == before


def test_no_thread_remains_after_close(fake: RunningFake) -> None:
    with SwitchClient.connect(fake.address, name="gone", timeout=60.0):
        threads = [t for t in threading.enumerate() if t.name.startswith("p4runtime-switch gone")]
        assert threads
    for thread in threads:
        thread.join(60)
    assert [thread.name for thread in threads if thread.is_alive()] == []


# Pipelines


def test_a_new_pipeline_starts_without_groups(client: SwitchClient, fake: RunningFake, tmp_path: Path) -> None:
    info, config = tmp_path / "p.p4info.txt", tmp_path / "p.bin"
    info.write_text(text_format.MessageToString(fake_p4info()))
    config.write_bytes(b"\x00code\xff")
    client.set_group(2, [1])
    client.insert(l2_entry(1))
    client.push_pipeline(PipelineConfig(info, config))
    assert fake.switch.config == b"\x00code\xff"
    assert client.groups() == {}
    assert client.read("l2") == []


def test_pipeline_files_that_are_missing_or_wrong(client: SwitchClient, tmp_path: Path) -> None:
    info, config = tmp_path / "p.p4info.txt", tmp_path / "p.bin"
    with pytest.raises(SwitchError, match=r"cannot read P4Info .*p\.p4info\.txt.*compile"):
        client.push_pipeline(PipelineConfig(info, config))
    info.write_text("tables { preamble {")
    with pytest.raises(SwitchError, match="not P4Info text"):
        client.push_pipeline(PipelineConfig(info, config))
    binary = tmp_path / "p.p4info.bin"
    binary.write_bytes(b"tables { preamble {")
    with pytest.raises(SwitchError, match=r"p\.p4info\.bin: not binary P4Info"):
        client.push_pipeline(PipelineConfig(binary, config))
    info.write_bytes(b"\xff\xfe")
    with pytest.raises(SwitchError, match="not P4Info text"):
        client.push_pipeline(PipelineConfig(info, config))
    info.write_text(text_format.MessageToString(fake_p4info()))
    with pytest.raises(SwitchError, match="no compiled program"):
        client.push_pipeline(PipelineConfig(info, config))


def test_a_switch_without_a_program_says_so() -> None:
    with (
        RunningFake(FakeSwitch()) as fake,
        SwitchClient.connect(fake.address, name="s1", timeout=60.0) as client,
        pytest.raises(SwitchError, match="has no program yet"),
    ):
        client.read("l2")


def test_entries_that_the_program_fixes_are_not_the_control_planes_own(client: SwitchClient, fake: RunningFake) -> None:
    mine, fixed = (
        TableEntry(
            "jobs", {"gen": gen, "port": 1}, "root", {"mode": 1, "job": 2, "group": 3, "src_ip": 1, "src_udp": 1}
        )
        for gen in (7, 8)
    )
    client.insert(mine, fixed)
    for entity in fake.switch.entities.values():
        if client.key(from_message(entity.table_entry, client.p4info)) == client.key(fixed):
            entity.table_entry.is_const = True
    assert sorted(int(entry.match["gen"]) for entry in client.read("jobs")) == [7, 8]
    assert [int(entry.match["gen"]) for entry in client.read_own("jobs")] == [7]


# Registers


REGISTERS = """
registers { preamble { id: 1 name: "degrees" } type_spec { new_type { name: "degrees_t" } } size: 4 }
registers { preamble { id: 2 name: "flags" } type_spec { new_type { name: "flag_t" } } size: 4 }
registers { preamble { id: 3 name: "ports" } type_spec { new_type { name: "port_t" } } size: 4 }
type_info {
  new_types { key: "degrees_t" value { original_type { bitstring { int { bitwidth: 8 } } } } }
  new_types { key: "flag_t" value { original_type { bool {} } } }
  new_types { key: "port_t" value { translated_type { uri: "a" sdn_bitwidth: 32 } } }
}
"""


@pytest.mark.parametrize(
    ("register", "value", "data"),
    [
        ("degrees", -5, {"bitstring": b"\xfb"}),
        ("degrees", 100, {"bitstring": b"\x64"}),
        ("flags", 1, {"bool": True}),
        ("ports", 1 << 31, {"bitstring": b"\x80\0\0\0"}),
    ],
)
def test_cells_of_registers_of_declared_types(register: str, value: int, data: dict[str, Any]) -> None:
    info = P4Info(text_format.Parse(REGISTERS, p4info_pb2.P4Info()))
    message = p4runtime_pb2.Entity()
    cell = RegisterCell(register, 2, value)
    cell.fill(message, info, "modify")
    assert message.register_entry.data == p4data_pb2.P4Data(**data)
    assert RegisterCell.decode(message, info) == cell


@pytest.mark.parametrize(("register", "value"), [("degrees", 128), ("flags", 2), ("ports", 1 << 32), ("ports", -1)])
def test_what_a_declared_type_has_no_bits_for_is_refused(register: str, value: int) -> None:
    info = P4Info(text_format.Parse(REGISTERS, p4info_pb2.P4Info()))
    with pytest.raises(SwitchError, match=str(value)):
        RegisterCell(register, 2, value).fill(p4runtime_pb2.Entity(), info, "modify")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tags", "there are 65; the nearest: ingress.tag"),
        ("x.tagg", "there are 65; the nearest: ingress.tag"),
        ("nothing like it", "there are 65, from ingress.lane00.sum to ingress.tag"),
    ],
)
def test_of_very_many_names_an_error_has_the_nearest(name: str, says: str) -> None:
    names = [*(f"ingress.lane{lane:02}.sum" for lane in range(64)), "ingress.tag"]
    registers = [{"preamble": {"id": number, "name": full}} for number, full in enumerate(names, 1)]
    with pytest.raises(SwitchError) as refused:
        P4Info(p4info_pb2.P4Info(registers=registers)).find("register", name)
    assert str(refused.value) == f"no register {name!r} in the switch; {says}"


@pytest.mark.parametrize("group", [MulticastGroup(1 << 32), MulticastGroup(7, (Replica(-1),))])
def test_a_number_that_a_message_has_no_bits_for_is_refused(client: SwitchClient, group: MulticastGroup) -> None:
    with pytest.raises(SwitchError, match=f"multicast group {group.number}: "):
        client.insert(MulticastGroup(1), group)
    assert list(client.each(MulticastGroup())) == []
