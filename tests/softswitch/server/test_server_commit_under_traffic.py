"""Frames that come while a pipeline is committed with the state of the one before."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from raw_client import Names, RawClient
from server_programs import Program, compiled

from catchment.softswitch.process import SwitchProcess
from catchment.softswitch.shm import Port
from catchment.wire.generated import p4runtime_pb2

ENTRIES = 500
ROUNDS = 4
PATIENCE = 60.0


@pytest.fixture(scope="session")
def thrice(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """thrice.p4, compiled."""
    return compiled("thrice", tmp_path_factory.mktemp("thrice"))


def cell_of(names: Names, register: str, index: int) -> p4runtime_pb2.Entity:
    cell = p4runtime_pb2.Entity()
    cell.register_entry.register_id = names.register_id(register)
    cell.register_entry.index.index = index
    return cell


@pytest.mark.parametrize("in_callers", [False, True])
def test_each_frame_finds_all_state_before_or_behind_a_reconciled_pipeline(
    start: Callable[..., SwitchProcess], thrice: Program, in_callers: bool
) -> None:
    names = Names(thrice.p4info)
    with tempfile.TemporaryDirectory(prefix="p") as folder:
        switch = start(
            grpc=f"unix:{folder}/grpc",
            ports={1: f"shm:{folder}/1"},
            program=thrice.shared_object,
            p4info=thrice.p4info_file,
            program_dir=thrice.shared_object.parent,
            extra=("--in-callers",) if in_callers else (),
        )
        port = Port.attach(Path(folder) / "1", timeout=PATIENCE)
        with port, RawClient(switch.address) as client, ThreadPoolExecutor(1) as committing:
            assert client.arbitrate() == 0
            client.insert(*[names.entry("route_t", {1: value}, ("back", [])) for value in range(ENTRIES)])
            sent, came = 0, 0
            for cookie in range(ROUNDS):
                done = committing.submit(client.set_pipeline, "RECONCILE_AND_COMMIT", thrice.config(cookie=cookie))
                while not done.done():
                    sent += port.send([((sent + i) % ENTRIES).to_bytes(4, "big") for i in range(8)], timeout=PATIENCE)
                    came += len(port.receive(timeout=0.001))
                done.result()
            while came < sent and (more := port.receive(timeout=PATIENCE)):
                came += len(more)
            cells = [cell_of(names, "first", 0), cell_of(names, "middle", 19999), cell_of(names, "last", 0)]
            counts = [int.from_bytes(client.read(cell)[0].register_entry.data.bitstring, "big") for cell in cells]
    assert sent > 0
    assert (came, counts) == (sent, [sent] * 3)
