"""What a client hears of frames that a peer has run itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from frame_ports import extras_probe
from raw_client import Names, RawClient
from server_programs import Program

from catchment.softswitch import native
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

SRC = 0x020000000009
Launch = Callable[..., Any]


@pytest.fixture
def launch(start: Callable[..., SwitchProcess], extras: Program) -> Iterator[Launch]:
    """Starts a switch that runs extras.p4, and attaches to its port 1."""
    with tempfile.TemporaryDirectory(prefix="p") as folder:

        def launch_one(**options: Any) -> tuple[SwitchProcess, Any]:
            switch = start(
                grpc=f"unix:{folder}/grpc",
                ports={1: f"shm:{folder}/1"},
                program=extras.shared_object,
                p4info=extras.p4info_file,
                extra=("--in-callers",),
                **options,
            )
            port = native.runtime().InsidePort(f"{folder}/1", 60_000)
            assert "catchment-state" in Path("/proc/self/maps").read_text()
            return switch, port

        yield launch_one


def test_digests_come_to_the_client(launch: Launch, extras: Program) -> None:
    switch, port = launch()
    digest = p4runtime_pb2.Entity()
    digest.digest_entry.digest_id = Names(extras.p4info).digest_id("learned_t")
    digest.digest_entry.config.max_list_size = 1
    with RawClient(switch.address) as client:
        assert client.arbitrate() == 0
        client.insert(digest)
        for flow in range(1, 20):
            port.send([extras_probe(SRC, flow)])
            (data,) = client.receive().digest.data
            members = [int.from_bytes(member.bitstring, "big") for member in data.struct.members]
            assert members == [SRC, 1, flow]


def test_frames_to_the_controller_come_to_the_client(launch: Launch) -> None:
    switch, port = launch(cpu_port=2)
    with RawClient(switch.address) as client:
        assert client.arbitrate() == 0
        for flow in range(1, 20):
            port.send([extras_probe(SRC, flow)])
            assert flow.to_bytes(2, "big") in client.receive().packet.payload
