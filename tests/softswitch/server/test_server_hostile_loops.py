"""Frames whose loops have no end: the control plane, the log and the end of the switch do not wait for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from google.protobuf import text_format
from google.rpc import code_pb2
from raw_client import Names, RawClient
from server_programs import Program

from catchment.softswitch.build import build
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

SOURCE = Path(__file__).parents[1] / "runtime" / "loops.p4"
STEPS = 1_000_000
FRAMES = 4000
ENDLESS = bytes([1, 255, 0, 0, 0, 0, 0, 0])


def loops(folder: Path) -> Program:
    built = build(SOURCE)
    program = Program(folder / "loops.so", folder / "loops.p4info.txt")
    shutil.copy(built.shared_object, program.shared_object)
    program.p4info_file.write_text(text_format.MessageToString(built.p4info))
    return program


def test_the_control_plane_gets_in_between_two_batches(start: Callable[..., SwitchProcess], tmp_path: Path) -> None:
    """Thousands of packet-outs without end wait in line; a read does not wait for them, and neither does SIGTERM."""
    program = loops(tmp_path)
    switch = start(program=program.shared_object, p4info=program.p4info_file, extra=("--max-steps", str(STEPS)))
    cell = p4runtime_pb2.Entity()
    cell.register_entry.register_id = Names(program.p4info).register_id("rounds_taken")
    cell.register_entry.index.index = 0
    with RawClient(switch.address) as client:
        assert client.arbitrate((0, 1)) == 0
        out = p4runtime_pb2.StreamMessageRequest(packet=p4runtime_pb2.PacketOut(payload=ENDLESS))
        for _ in range(FRAMES):
            client.send(out)
        done = 0
        while done == 0:
            [entity] = client.read(cell)
            done = int.from_bytes(entity.register_entry.data.bitstring, "big")
        assert done < STEPS * FRAMES, "the read waited for all of them"
        assert done % STEPS == 0, "the read saw half a packet"
        client.set_pipeline("VERIFY_AND_COMMIT", program.config())
        assert switch.stop(grace=60) == 0, "it had to be killed"
    warnings = [line for line in switch.output.splitlines() if "its loops took more than" in line]
    assert warnings, switch.output
    assert f"{SOURCE}:" in warnings[0] and f"more than {STEPS} steps" in warnings[0]
    assert len(warnings) < FRAMES


def test_packet_outs_that_wait_are_bounded(start: Callable[..., SwitchProcess], tmp_path: Path) -> None:
    """Frames without end keep 64 MiB waiting, of which 16 MiB may; a client hears which of its own may not."""
    program = loops(tmp_path)
    switch = start(program=program.shared_object, p4info=program.p4info_file, extra=("--max-steps", str(STEPS)))
    endless = p4runtime_pb2.StreamMessageRequest(packet=p4runtime_pb2.PacketOut(payload=ENDLESS))
    long = p4runtime_pb2.StreamMessageRequest(packet=p4runtime_pb2.PacketOut(payload=bytes(64 << 10)))
    with RawClient(switch.address) as client:
        assert client.arbitrate((0, 1)) == 0
        for _ in range(FRAMES):
            client.send(endless)
        for _ in range(1024):
            client.send(long)
        error = client.receive().error
        assert error.canonical_code == code_pb2.RESOURCE_EXHAUSTED and "packet-outs" in error.message
        assert error.packet_out.packet_out == long.packet
        assert switch.stop(grace=60) == 0
