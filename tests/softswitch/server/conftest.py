"""A running switch with the program kinds.p4, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from frame_ports import FramePorts
from raw_client import Names, RawClient
from server_programs import EXECUTABLE, Program, compiled

from catchment.softswitch.process import SwitchProcess


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """kinds.p4, compiled."""
    return compiled("kinds", tmp_path_factory.mktemp("kinds"))


@pytest.fixture(scope="session")
def extras(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """extras.p4, compiled."""
    return compiled("extras", tmp_path_factory.mktemp("extras"))


@pytest.fixture
def start(kinds: Program) -> Iterator[Callable[..., SwitchProcess]]:
    """Starts switches that end with the test; they may load every program beside kinds."""
    started: list[SwitchProcess] = []

    def start_one(**options: object) -> SwitchProcess:
        defaults: dict[str, object] = {"program_dir": kinds.shared_object.parent, "executable": EXECUTABLE}
        process = SwitchProcess(**{**defaults, **options})  # type: ignore[arg-type]
        started.append(process)
        return process

    yield start_one
    codes = [process.stop(grace=60) for process in started]
    assert codes == [0] * len(codes), started[0].output


@pytest.fixture
def program(kinds: Program) -> Program:
    """What switches run; modules that test another program have their own."""
    return kinds


@pytest.fixture
def switch(program: Program, start: Callable[..., SwitchProcess]) -> SwitchProcess:
    return start(program=program.shared_object, p4info=program.p4info_file, program_dir=program.shared_object.parent)


@pytest.fixture
def client(switch: SwitchProcess) -> Iterator[RawClient]:
    """The primary of that switch."""
    with RawClient(switch.address) as one:
        assert one.arbitrate((0, 1)) == 0
        yield one


@pytest.fixture
def ports() -> Iterator[FramePorts]:
    """Four interfaces in a network namespace of their own."""
    made = FramePorts(4)
    yield made
    made.close()


@pytest.fixture
def wired(
    ports: FramePorts, start: Callable[..., SwitchProcess], program: Program, tmp_path: Path
) -> Iterator[RawClient]:
    """The primary of a switch on four interfaces."""
    switch = start(
        grpc=f"unix:{tmp_path}/switch.sock",
        ports=ports.interfaces,
        prefix=ports.prefix,
        program=program.shared_object,
        p4info=program.p4info_file,
        program_dir=program.shared_object.parent,
    )
    with RawClient(switch.address) as client:
        assert client.arbitrate() == 0
        yield client


@pytest.fixture
def names(program: Program) -> Names:
    return Names(program.p4info)
