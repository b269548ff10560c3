"""What a lab says of its switch once its workers say that nothing moves."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.topology import Topology, star
from catchment.sim.glm import labs
from catchment.sim.glm.labs import Lab
from catchment.wire.socket_folder import socket_folder


class StillLab(Lab):
    """A lab whose switch is there, and does not move."""

    def __init__(self, folder: Path) -> None:
        super().__init__(1, 0.0)
        self._path = folder / "grpc"

    def _open(self, exits: ExitStack) -> tuple[Topology, SwitchClient, PipelineConfig, JobPlan]:
        listener = exits.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(self._path))
        listener.listen()
        nothing: Any = None
        return star(self._hosts, program=self._path), nothing, PipelineConfig(self._path, self._path), nothing

    def _addresses(self) -> Mapping[str, str]:
        return {"s1": f"unix:{self._path}"}

    def _check_switch(self) -> None:
        """Its process runs."""

    def port(self, wid: int) -> str | None:
        raise NotImplementedError

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        raise NotImplementedError


def test_a_switch_that_stands_still_is_not_waited_for_as_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labs, "_LOOK_SECONDS", 0.25)
    with socket_folder() as folder, StillLab(Path(folder)) as lab:
        said = lab.trouble()
    assert said.startswith("the switch s1 is lost") and "no P4Runtime server answers within 0.25 s" in said
