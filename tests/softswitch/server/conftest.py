"""A running switch with the program kinds.p4, and clients of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from frame_ports import FramePorts
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2
from raw_client import Names, RawClient

from softswitch.build import build
from softswitch.process import DEFAULT_EXECUTABLE, SwitchProcess

EXECUTABLE = Path(os.environ.get("CATCHMENT_SWITCH", DEFAULT_EXECUTABLE))


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program on disk."""

    shared_object: Path
    p4info_file: Path

    @property
    def p4info(self) -> p4info_pb2.P4Info:
        return text_format.Parse(self.p4info_file.read_text(), p4info_pb2.P4Info())

    def config(self, cookie: int | None = None) -> p4runtime_pb2.ForwardingPipelineConfig:
        config = p4runtime_pb2.ForwardingPipelineConfig(
            p4info=self.p4info, p4_device_config=self.shared_object.read_bytes()
        )
        if cookie is not None:
            config.cookie.cookie = cookie
        return config


def compiled(name: str, folder: Path) -> Program:
    built = build(Path(__file__).parent / f"{name}.p4")
    program = Program(folder / f"{name}.so", folder / f"{name}.p4info.txt")
    shutil.copy(built.shared_object, program.shared_object)
    program.p4info_file.write_text(text_format.MessageToString(built.p4info))
    return program


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
    codes = [process.stop() for process in started]
    assert codes == [0] * len(codes), started[0].stderr


@pytest.fixture
def switch(kinds: Program, start: Callable[..., SwitchProcess]) -> SwitchProcess:
    """A switch that runs kinds.p4."""
    return start(program=kinds.shared_object, p4info=kinds.p4info_file)


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
def names(kinds: Program) -> Names:
    return Names(kinds.p4info)
