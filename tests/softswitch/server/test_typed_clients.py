"""The control plane's two clients on the real server: what both do, and what the asynchronous one hears and sends."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from frame_ports import FramePorts, extras_probe, probe
from server_programs import Program

from catchment.controlplane.client import (
    AsyncSwitchClient,
    Digest,
    Entity,
    MulticastGroup,
    PacketOut,
    Replica,
    SwitchClient,
    SwitchError,
    TableEntry,
    ValueSet,
)
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.softswitch.process import SwitchProcess

SECONDS = 60.0
HOUR_NS = 3600 * 10**9
DST, SRC = 0x020000000007, 0x020000000009
_T = TypeVar("_T")
_E = TypeVar("_E", bound=Entity)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


class Blocking:
    """`SwitchClient`, to be called as the asynchronous one is."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def __aenter__(self) -> Blocking:
        self.client = SwitchClient.connect(self._address, name="s1", timeout=SECONDS)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.client.close()

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*arguments: Any) -> Any:
            return getattr(self.client, name)(*arguments)

        return call

    async def each(self, *patterns: _E) -> AsyncIterator[_E]:
        for found in self.client.each(*patterns):
            yield found


def asynchronous(address: str) -> AsyncSwitchClient:
    return AsyncSwitchClient(address, name="s1", timeout=SECONDS)


@pytest.fixture(params=[Blocking, asynchronous], ids=["blocking", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Callable[[str], AsyncSwitchClient]:
    chosen: Callable[[str], AsyncSwitchClient] = request.param
    return chosen


def run(use: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(asyncio.wait_for(use, SECONDS))


async def listed(switch: AsyncSwitchClient, *patterns: _E) -> list[_E]:
    return [found async for found in switch.each(*patterns)]


def config(program: Program) -> PipelineConfig:
    return PipelineConfig(program.p4info_file, program.shared_object)


@pytest.mark.sampled(4)
def test_a_pipeline_is_pushed_and_known_again(
    connect: Callable[[str], AsyncSwitchClient],
    start: Callable[..., SwitchProcess],
    kinds: Program,
    extras: Program,
    tmp_path: Path,
) -> None:
    async def use(address: str) -> None:
        async with connect(address) as switch:
            assert not await switch.runs(config(kinds))
            with pytest.raises(SwitchError, match="push a pipeline first"):
                await switch.insert(MulticastGroup(7))
            await switch.push_pipeline(config(kinds))
            assert await switch.runs(config(kinds))
            group = MulticastGroup(7, (Replica(1), Replica(2)))
            entry = TableEntry("exact_t", {"dst": DST, "ingress_port": 1}, "flood", {"group": 7})
            await switch.insert(group, entry)
            assert await listed(switch, MulticastGroup()) == [group]
            await switch.modify(MulticastGroup(7, (Replica(3),)))
            assert await listed(switch, MulticastGroup()) == [MulticastGroup(7, (Replica(3),))]
            assert [found.action for found in await listed(switch, TableEntry("exact_t"))] == ["flood"]
            await switch.delete(entry)
            with pytest.raises(SwitchError) as caught:
                await switch.delete(entry, MulticastGroup(8))
            assert [(one.index, one.code) for one in caught.value.failures] == [(0, "NOT_FOUND"), (1, "NOT_FOUND")]
            await switch.push_pipeline(config(extras))  # names are looked up in the new program from here on
            assert not await switch.runs(config(kinds))
            assert await listed(switch, MulticastGroup()) == []
            assert await listed(switch, TableEntry("idle_t")) == []

    for program in (kinds, extras):
        shutil.copy(program.shared_object, tmp_path)
    run(use(start(program_dir=tmp_path).address))


def test_a_client_that_was_taken_over_takes_the_switch_back(
    connect: Callable[[str], AsyncSwitchClient], switch: SwitchProcess, kinds: Program
) -> None:
    async def use() -> None:
        async with connect(switch.address) as first, asynchronous(switch.address) as second:
            await second.insert(MulticastGroup(1))
            await first.insert(MulticastGroup(2))
            await second.push_pipeline(config(kinds))
            await first.push_pipeline(config(kinds))
            assert await listed(second, MulticastGroup()) == []

    run(use())


@pytest.mark.sampled(4)
def test_value_sets_and_digests_are_entities(
    connect: Callable[[str], AsyncSwitchClient],
    start: Callable[..., SwitchProcess],
    extras: Program,
    rng: random.Random,
) -> None:
    members = tuple(rng.sample(range(1 << 16), 4))
    digest = Digest("learned_t", rng.randrange(HOUR_NS), rng.randrange(1000), rng.randrange(HOUR_NS))

    async def use(address: str) -> None:
        async with connect(address) as switch:
            await switch.modify(ValueSet("probe_types", members))
            assert await listed(switch, ValueSet("probe_types")) == [ValueSet("probe_types", members)]
            await switch.modify(ValueSet("probe_types", members[:1]))
            assert await listed(switch, ValueSet()) == [ValueSet("probe_types", members[:1])]
            for wrong, why in (((1 << 16,), "does not fit in 16 bits"), (({"type": 1},), "no key field 'type'")):
                with pytest.raises(SwitchError, match=why):
                    await switch.modify(ValueSet("probe_types", wrong))
            with pytest.raises(SwitchError, match="RESOURCE_EXHAUSTED"):
                await switch.modify(ValueSet("probe_types", (*members, *range(8))))
            await switch.insert(digest)
            assert await listed(switch, Digest()) == [digest]
            await switch.modify(Digest("learned_t"))
            assert await listed(switch, Digest("learned_t")) == [Digest("learned_t")]
            await switch.delete(digest)
            assert await listed(switch, Digest()) == []

    run(
        use(
            start(
                program=extras.shared_object, p4info=extras.p4info_file, program_dir=extras.shared_object.parent
            ).address
        )
    )


@needs_root
def test_digests_are_acknowledged_as_the_caller_takes_them(
    ports: FramePorts, start: Callable[..., SwitchProcess], extras: Program
) -> None:
    """Data of a list come again after it was acknowledged, and not before."""

    def send(*flows: int) -> None:
        for flow in flows:
            ports.send(1, extras_probe(SRC, flow))
            ports.receive(2)

    def data(flows: Sequence[int]) -> tuple[dict[str, object], ...]:
        return tuple({"src": "02:00:00:00:00:09", "port": 1, "flow": flow} for flow in flows)

    async def use(switch: AsyncSwitchClient) -> None:
        await switch.insert(Digest("learned_t", HOUR_NS, 3, HOUR_NS))
        lists = switch.digests()
        send(1, 1, 2, 2, 3)
        first = await anext(lists)
        assert (first.digest, first.data) == ("learned_t", data((1, 2, 3)))
        send(1, 2, 3, 4, 5, 6)
        second = await anext(lists)
        assert second.data == data((4, 5, 6))
        assert second.number != first.number
        assert second.timestamp_ns >= first.timestamp_ns > 0
        third = asyncio.ensure_future(anext(lists))  # acknowledges the second list, sooner or later
        while not third.done():
            await asyncio.to_thread(send, 4, 5, 6)
        flows = [dict(one)["flow"] for one in (await third).data]  # type: ignore[call-overload]
        assert sorted(flows) == [4, 5, 6]
        await lists.aclose()

    run(wired(ports, start, extras, use))


@needs_root
def test_packets_come_and_go_with_their_metadata(
    ports: FramePorts, start: Callable[..., SwitchProcess], kinds: Program, rng: random.Random
) -> None:
    frames = [probe(DST, number=number, tail=rng.randbytes(rng.randrange(50, 200))) for number in range(5)]

    async def use(switch: AsyncSwitchClient) -> None:
        packets = switch.packets()
        await switch.insert(TableEntry("exact_t", {"dst": DST, "ingress_port": 1}, "to_controller", {"reason": 0x55}))
        for frame in frames:
            ports.send(1, frame)
        for frame in frames:
            packet = await anext(packets)
            assert (packet.payload[:14], packet.payload[-50:]) == (frame[:14], frame[-50:])
            assert packet.metadata == {"ingress_port": 1, "reason": 0x55}
        await switch.send(*(PacketOut(frame, {"egress_port": 3}) for frame in frames))
        for frame in frames:
            assert ports.receive(3)[-50:] == frame[-50:]
        for metadata, why in (
            ({"egress_prt": 3}, "has no egress_prt; it has: egress_port"),
            ({"egress_port": 512}, "9 bits"),
        ):
            with pytest.raises(SwitchError, match=why):
                await switch.send(PacketOut(frames[0], metadata))
        async with asynchronous(switch.address) as successor:
            await switch.send(PacketOut(frames[0], {"egress_port": 4}))
            refusal = await anext(switch.refusals())
            assert (refusal.code, "a packet was refused" in str(refusal)) == ("PERMISSION_DENIED", True)
            await successor.send(PacketOut(frames[1], {"egress_port": 4}))
            assert ports.receive(4)[-50:] == frames[1][-50:]

    run(wired(ports, start, kinds, use))


async def wired(
    ports: FramePorts,
    start: Callable[..., SwitchProcess],
    program: Program,
    use: Callable[[AsyncSwitchClient], Coroutine[Any, Any, None]],
) -> None:
    """Use the client of a switch on interfaces that runs a program."""
    running = start(
        ports=ports.interfaces, prefix=ports.prefix, program=program.shared_object, p4info=program.p4info_file
    )
    async with asynchronous(running.address) as switch:
        await use(switch)
