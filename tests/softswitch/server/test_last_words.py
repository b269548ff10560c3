"""A switch whose data plane cannot go on says in its log what it was, and what to do, before it ends."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from google.protobuf import text_format
from raw_client import RawClient
from server_programs import EXECUTABLE

from catchment.softswitch.build import build
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

EXTERNS = Path(__file__).parents[1] / "externs"


THROWN = {7: 'std::runtime_error("the filter is full")', 8: "std::bad_alloc()", 9: "7"}


@pytest.fixture(scope="module")
def throwing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The externs' example, whose function throws at some values: a switch's program and its p4info."""
    folder = tmp_path_factory.mktemp("throwing")
    header, usual = folder / "throwing.hpp", "  odd = value % 2 != 0;\n"
    text = (EXTERNS / "bloom.hpp").read_text()
    assert text.count(usual) == 1
    ends = "".join(f"  if (value == {value}) throw {what};\n" for value, what in THROWN.items())
    header.write_text("#include <new>\n#include <stdexcept>\n" + text.replace(usual, usual + ends))
    built = build(EXTERNS / "bloom.p4", externs=header)
    p4info = folder / "throwing.p4info.txt"
    p4info.write_text(text_format.MessageToString(built.p4info))
    return {"program": Path(shutil.copy(built.shared_object, folder / "throwing.so")), "p4info": p4info}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (7, ["the filter is full. ", "Mend the program's own externs"]),
        (8, ["memory has ended. ", "Give it more memory"]),
        (9, ["an exception of an unknown type. ", "Mend the program's own externs"]),
    ],
)
def test_an_exception_in_the_data_plane_is_explained(throwing: dict[str, Path], key: int, words: list[str]) -> None:
    switch = SwitchProcess(executable=EXECUTABLE, **throwing)  # type: ignore[arg-type]
    with RawClient(switch.address) as client:
        client.arbitrate((0, 1))
        for value in (6, key):  # a frame before it goes through
            frame = value.to_bytes(4, "big") + bytes(8)
            client.send(p4runtime_pb2.StreamMessageRequest(packet=p4runtime_pb2.PacketOut(payload=frame)))
        assert switch._process.wait(60) == -signal.SIGABRT
    assert switch.stop() == -signal.SIGABRT
    for word in (
        "catchment-switch: ending: a thread cannot go on: ",
        "A frame may have been carried out in part",
        "start the switch again",
        *words,
    ):
        assert word in switch.output
