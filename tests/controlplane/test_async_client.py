"""The asynchronous client against a server in memory, and the watch over ports."""

from __future__ import annotations

import asyncio
import json
import socketserver
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake, entity_key

from catchment.controlplane.client import MulticastGroup, P4Info, Replica, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.client.aio import AsyncSwitchClient
from catchment.controlplane.client.channel import open_async_channel
from catchment.controlplane.client.entries import to_message
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.networks.port_watch import PortChange, watch_ports
from catchment.controlplane.networks.state import admin_socket
from catchment.wire.generated import p4runtime_pb2

INFO = P4Info(fake_p4info())
PATIENCE = 60.0


def l2_entry(number: int, port: int = 3) -> TableEntry:
    return TableEntry("l2", {"dst": f"02:00:00:00:00:{number:02x}"}, "forward", {"port": port})


def test_what_is_written_is_read_by_both_clients(fake: RunningFake) -> None:
    async def use() -> tuple[list[TableEntry], list[MulticastGroup]]:
        async with AsyncSwitchClient(fake.address, timeout=PATIENCE) as switch:
            await switch.write(*(+l2_entry(n) for n in range(1, 100)), +MulticastGroup(7, (Replica(1),)))
            await switch.write(~l2_entry(1, port=4), -l2_entry(2))
            entries = [entry async for entry in switch.each(TableEntry("l2"))]
            return entries, [group async for group in switch.each(MulticastGroup())]

    entries, groups = asyncio.run(use())
    assert {(e.match["dst"], e.params["port"]) for e in entries} == {
        (l2_entry(n).match["dst"], 4 if n == 1 else 3) for n in range(1, 100) if n != 2
    }
    assert groups == [MulticastGroup(7, (Replica(1),))]
    with SwitchClient.connect(fake.address, timeout=PATIENCE, read_only=True) as client:
        assert client.read("l2") == entries


def test_refused_updates_are_named(fake: RunningFake) -> None:
    entity = p4runtime_pb2.Entity(table_entry=to_message(l2_entry(2), INFO))
    fake.switch.refuse[entity_key(entity)] = (8, "table full")

    async def use() -> None:
        async with AsyncSwitchClient(fake.address, name="s1", timeout=PATIENCE) as switch:
            await switch.write(+l2_entry(1), +l2_entry(2))

    with pytest.raises(SwitchError, match=r"1 of 2 update\(s\) refused") as caught:
        asyncio.run(use())
    assert [(one.index, one.code, one.message) for one in caught.value.failures] == [
        (1, "RESOURCE_EXHAUSTED", "table full")
    ]


def test_a_reader_disturbs_nobody(fake: RunningFake, client: SwitchClient) -> None:
    client.insert(l2_entry(1))

    async def use() -> list[TableEntry]:
        async with AsyncSwitchClient(fake.address, timeout=PATIENCE, read_only=True) as switch:
            with pytest.raises(SwitchError, match="opened for reading"):
                await switch.write(+l2_entry(2))
            return [entry async for entry in switch.each(TableEntry("l2"))]

    before = fake.switch.primary
    assert asyncio.run(use()) == [l2_entry(1)]
    assert fake.switch.primary == before


def test_nobody_there_is_said_in_time() -> None:
    async def use() -> None:
        async with AsyncSwitchClient("127.0.0.1:1", timeout=0.2):
            pass

    with pytest.raises(SwitchError, match="no P4Runtime server answers"):
        asyncio.run(use())


def test_no_client_has_grpc_watch_its_channel(fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use() -> None:
        async with open_async_channel(fake.address) as channel:
            for watch in ("channel_ready", "wait_for_state_change"):
                monkeypatch.setattr(type(channel), watch, lambda *_: pytest.fail("a channel is watched"))
        async with AsyncSwitchClient(fake.address, timeout=PATIENCE, read_only=True):
            pass

    asyncio.run(use())


def test_notices_come_by_kind_and_end_with_the_switch() -> None:
    packets = [p4runtime_pb2.StreamMessageResponse(packet={"payload": payload}) for payload in (b"one", b"two")]
    idle = p4runtime_pb2.StreamMessageResponse()
    for number in (1, 2):
        idle.idle_timeout_notification.table_entry.append(to_message(l2_entry(number), INFO))
    switch = FakeSwitch(p4info=fake_p4info(), notices=[packets[0], idle, packets[1]])

    async def use(running: RunningFake) -> tuple[list[bytes], list[TableEntry]]:
        async with AsyncSwitchClient(running.address, timeout=PATIENCE) as client:
            idle_entries, packets_in = client.idle_timeouts(), client.packets()
            entries = [await anext(idle_entries), await anext(idle_entries)]
            payloads = [(await anext(packets_in)).payload for _ in range(2)]
            await asyncio.to_thread(running.stop)
            return [*payloads, *[packet.payload async for packet in packets_in]], [
                *entries,
                *[entry async for entry in idle_entries],
            ]

    with RunningFake(switch) as running:
        assert asyncio.run(use(running)) == ([b"one", b"two"], [l2_entry(1), l2_entry(2)])


def test_whoever_waits_for_notices_is_not_left_waiting(fake: RunningFake) -> None:
    """Every caller learns of the end, also of one that the client makes itself; a reader is told that none come."""

    async def use() -> list[list[object]]:
        async with AsyncSwitchClient(fake.address, timeout=PATIENCE) as client:
            waiting = [asyncio.create_task(listed(client.packets())) for _ in range(2)]
            waiting.append(asyncio.create_task(listed(client.digests())))
            await asyncio.sleep(0)
        async with AsyncSwitchClient(fake.address, timeout=PATIENCE, read_only=True) as client:
            with pytest.raises(SwitchError, match="opened for reading"):
                await anext(client.idle_timeouts())
        return [await task for task in waiting]

    async def listed(notices: AsyncIterator[object]) -> list[object]:
        return [notice async for notice in notices]

    assert asyncio.run(asyncio.wait_for(use(), PATIENCE)) == [[], [], []]


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, bool]]:
    """Ports behind the admin socket of a switch at "lab:1"."""
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    up: dict[int, bool] = {}

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline():
                ports = [{"port": port, "up": state} for port, state in sorted(up.items())]
                self.wfile.write(json.dumps({"ok": True, "ports": ports}).encode() + b"\n")

    path = admin_socket("lab:1")
    assert path is not None
    with socketserver.ThreadingUnixStreamServer(str(path), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield up
        server.shutdown()
        thread.join()
        path.unlink()


def test_ports_are_told_as_they_are_and_as_they_change(ports: dict[int, bool]) -> None:
    ports.update({1: True, 2: False})

    async def watch() -> list[PortChange]:
        changes = watch_ports("lab:1", interval=0.001)
        seen = [await anext(changes), await anext(changes)]
        ports[2] = True
        seen.append(await anext(changes))
        ports[1] = False
        return [*seen, await anext(changes)]

    assert asyncio.run(asyncio.wait_for(watch(), PATIENCE)) == [
        PortChange(1, True),
        PortChange(2, False),
        PortChange(2, True),
        PortChange(1, False),
    ]


def test_ports_of_nobody_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))

    async def watch() -> None:
        await anext(watch_ports("lab:2"))

    with pytest.raises(ControlPlaneError, match="no switch listens"):
        asyncio.run(watch())
