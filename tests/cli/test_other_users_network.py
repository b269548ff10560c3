"""Verbs of a user who may not read the state file of a network that another user has up."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_lab import Run

from catchment.cli import target
from catchment.controlplane.networks.state import NetworkState, StateFile

NOBODY = 65534


@pytest.fixture
def state_file(topology: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The state file of a network that is up; it belongs to somebody else from then on."""
    call("job", "list")  # imports what it needs, while this process may read it
    call("net", "list")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setenv("CATCHMENT_RUN_DIR", name)
        (folder / "topology").write_bytes(topology.read_bytes())
        monkeypatch.setenv("CATCHMENT_TOPOLOGY", str(folder / "topology"))
        held = StateFile.acquire("lab")
        held.write(NetworkState("lab", os.getpid(), str(topology), ready=True))
        path = folder / "lab.json"
        path.chmod(0)
        if root := os.geteuid() == 0:
            os.seteuid(NOBODY)
        try:
            yield path
        finally:
            if root:
                os.seteuid(0)
            held.release()


@pytest.mark.parametrize("verb", ["job list", "net list", "stats"])
def test_it_is_said_whose_the_network_is(call: Run, state_file: Path, verb: str) -> None:
    owner = state_file.owner()
    said = call(*verb.split(), code=1)
    assert said == (
        f"catchment: network lab is another user's: {state_file} may not be read; use sudo, or be its owner, {owner}\n"
    )


@pytest.mark.usefixtures("state_file")
def test_the_shell_is_offered_nothing() -> None:
    assert target.complete_network("") == []
