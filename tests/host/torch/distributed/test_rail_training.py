"""DDP and FSDP2 over several rails: the same bits as over one, also when a rail fails in the middle of the training."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crew import FOLDER
from test_switch_restart import ends, start

from catchment.sim.lab import rail_lab
from catchment.sim.lab.shm_lab import ShmLab

HOSTS = ["w0", "w1", "w2"]
GBIT = 10**9


@dataclass(frozen=True, slots=True)
class Run:
    """How a training went: what each rank said."""

    said: list[dict[str, Any]]

    @property
    def bits(self) -> list[tuple[list[str], str]]:
        """The losses and the weights' digest of each rank."""
        return [(one["losses"], one["weights"]) for one in self.said]

    def rails(self) -> list[Mapping[str, list[Any]]]:
        """State, parts and incidents of each rail, at each rank."""
        return [one["rails"] for one in self.said]


def train(wrapper: str, *, rails: str, fails: bool = False) -> Run:
    """Train over a new job on the rails a and b; `fails`: the switch of a dies while operations are under way."""
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="ct-")))  # short: sockets lie in it
        labs = {rail: exits.enter_context(ShmLab(HOSTS, slots=1024)) for rail in "ab"}
        members = exits.enter_context(rail_lab.deployed(labs, HOSTS, [GBIT, GBIT], slots=32))
        parts = {rail: {"rail": rail, "workers": HOSTS} for rail in labs}
        job = {"name": "train", "kind": "allreduce", "workers": HOSTS, "parts": parts, "members": members}
        (folder / "job.json").write_text(json.dumps(job))
        go = folder / "go"
        each = [{"CATCHMENT_HOST": host} for host in HOSTS]
        ranks = start(
            str(FOLDER / "rail_training_member.py"), str(folder / "store"), wrapper, str(go),
            members=each, CATCHMENT_JOB=str(folder / "job.json"), CATCHMENT_RAILS=rails,
            CATCHMENT_RAIL_POLICY="fixed", CATCHMENT_RUN_DIR=str(folder / "run"),
        )  # fmt: skip
        if fails:
            labs["a"].kill_switch()
        go.touch()
        return Run(ends(ranks))


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", ["ddp", "fsdp2"])
def test_a_training_over_several_rails_has_the_bits_of_one_though_a_rail_fails(wrapper: str) -> None:
    alone = train(wrapper, rails="a")
    both = train(wrapper, rails="all")
    failing = train(wrapper, rails="all", fails=True)
    assert [list(rails) for rails in alone.rails()] == [["a"]] * len(HOSTS)
    if wrapper == "ddp" and not any(rail[2] for rails in both.rails() for rail in rails.values()):
        # A machine that is too slow to run a switch has incidents; without, every bucket is split.
        assert all(parts > 0 for rails in both.rails() for _, parts, _ in rails.values()), both.rails()
    assert [rails["a"][0] for rails in failing.rails()] == ["down"] * len(HOSTS)
    assert alone.bits[0][0][-1] != alone.bits[0][0][0]
    assert both.bits == alone.bits
    assert failing.bits == alone.bits
