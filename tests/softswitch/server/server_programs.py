"""The switch under test (CATCHMENT_SWITCH names another build of it), and its programs, compiled."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

from catchment.softswitch.build import build
from catchment.softswitch.process import DEFAULT_EXECUTABLE
from catchment.wire.generated import p4info_pb2, p4runtime_pb2

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
