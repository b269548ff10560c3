"""The claim on what a network's leftovers are found by: one holder on the machine, whatever the run folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catchment.controlplane.networks.state import NetworkError, StateFile
from catchment.sim.lab.mininet import claim as claims
from catchment.sim.lab.mininet.claim import Claim
from catchment.sim.lab.mininet.naming import interface_prefix

TWINS = ("scpone", "lab50909")
HOLDER = """
import sys
from catchment.controlplane.networks.state import StateFile
from catchment.sim.lab.mininet import claim
claim._SCOPE = {scope!r}
state, held = StateFile.acquire({name!r}), claim.Claim.acquire({name!r})
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims of this test alone: networks of the names used here may be up."""
    monkeypatch.setattr(claims, "_SCOPE", f"catchment-test-{os.getpid()}-")
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "own"))


@contextmanager
def holder(name: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has a network of this name in another run folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(scope=claims._SCOPE, name=name)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
        env={**os.environ, "CATCHMENT_RUN_DIR": str(folder)},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_same_name_in_another_run_folder_is_refused_with_its_owner(tmp_path: Path) -> None:
    with holder("lab", tmp_path / "other") as owner:
        with pytest.raises(NetworkError) as refused:
            Claim.acquire("lab")
        assert str(refused.value) == (
            f"network lab is already up (process {owner.pid}, run folder {tmp_path}/other); "
            f"run `CATCHMENT_RUN_DIR={tmp_path}/other catchment net down lab` first"
        )


def test_a_name_with_the_interfaces_of_a_live_network_is_refused_with_that_ones_name(tmp_path: Path) -> None:
    assert interface_prefix(TWINS[0]) == interface_prefix(TWINS[1])
    with holder(TWINS[0], tmp_path / "own") as owner, pytest.raises(NetworkError) as refused:
        Claim.acquire(TWINS[1])
    assert str(refused.value) == (
        "the interfaces of network lab50909 would be named ct2c2e-..., as those of network scpone are, which is up "
        f"(process {owner.pid}, run folder {tmp_path}/own); give lab50909 another name, or run "
        "`catchment net down scpone` first"
    )


def test_a_killed_holder_has_no_claim_any_more(tmp_path: Path) -> None:
    with holder("lab", tmp_path) as owner:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        Claim.acquire("lab").drop()


def test_a_claim_that_is_dropped_in_time_is_taken(tmp_path: Path) -> None:
    with holder("lab", tmp_path) as owner:
        taken: list[Claim] = []
        waiter = threading.Thread(target=lambda: taken.append(Claim.acquire("lab", patience=600.0)))
        waiter.start()
        owner.send_signal(signal.SIGKILL)
        waiter.join()
        taken.pop().drop()


def test_other_names_are_claimed_side_by_side() -> None:
    with Claim.acquire("left"), Claim.acquire("right"), pytest.raises(NetworkError, match="the interfaces of left"):
        Claim.acquire("left")


def test_a_program_that_does_not_listen_is_no_reason_to_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_LISTENS_SECONDS", 0.0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(claims._address("lab"))
        with pytest.raises(NetworkError, match="process unknown is at work on a network with the interfaces of lab"):
            Claim.acquire("lab")


def test_a_network_is_named_though_its_state_file_is_not_the_first_that_is_open(tmp_path: Path) -> None:
    with (tmp_path / "other.json").open("w"):
        state = StateFile.acquire("lab")
        with Claim.acquire("lab"), pytest.raises(NetworkError, match="network lab is already up"):
            Claim.acquire("lab")
        state.release()
