"""Jobs on p4sgd.p4 under the controller: members join by name, and whatever dies comes back or is named."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from controlled import ControlledLab, ControlledMember
from shapes import SLOTS_PROGRAM, WORKERS, unique
from test_restarts import all_done, kill_and_restart

from catchment.controlplane.topology import Target, star

MEMBERS = WORKERS[:3]
PARTS = ["s1", "controller", "w1"]


@pytest.fixture
def slots_lab_controlled(target: Target, tmp_path: Path) -> Iterator[ControlledLab]:
    topology = unique(star(MEMBERS, program=SLOTS_PROGRAM, target=target, lanes=8), "slots-controlled", target)
    with ControlledLab(topology, tmp_path) as lab:
        yield lab


def start(
    lab: ControlledLab, token: str, hosts: list[str], seed: int, timeout: float = 60.0
) -> dict[str, ControlledMember]:
    """Members in the middle of many all-reduces, the first of which is done."""
    sizes = [8, *([64] * 40 if lab.is_slow else [2000] * 60)]
    return lab.start("fast", token, hosts, seed=seed, workers=len(MEMBERS), sizes=sizes, timeout=timeout)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("parts", [None, *(pytest.param([part], marks=pytest.mark.slow) for part in PARTS)])
def test_a_part_dies_and_comes_back(slots_lab_controlled: ControlledLab, parts: list[str] | None,
                                    rng: random.Random) -> None:  # fmt: skip
    """One part at random; `make test-full` kills each."""
    lab = slots_lab_controlled
    (part,) = parts or [rng.choice(PARTS)]
    print(f"kills {part}")
    seed = rng.randrange(1 << 32)
    with lab.job("fast", MEMBERS, root=None, slots=16, kind="slots") as token:
        members = start(lab, token, MEMBERS, seed)
        for member in members.values():
            assert member.event("started") == {"started": True}
        kill_and_restart(lab, part, members, lambda host: start(lab, token, [host], seed)[host])
        assert all_done(members) == (2 if part in members else 1)
    lab.wait_until_up()


@pytest.mark.sampled(4)
def test_who_does_not_come_back_is_named(slots_lab_controlled: ControlledLab, rng: random.Random) -> None:
    lab = slots_lab_controlled
    with lab.job("fast", MEMBERS, root=None, slots=16, kind="slots") as token:
        members = start(lab, token, MEMBERS, rng.randrange(1 << 32), timeout=6.0)
        for member in members.values():
            member.event("started")
        members.pop("w2").kill()
        for host, member in members.items():
            event = member.event("error")
            assert "w2 is lost" in event.get("trouble", ""), (host, event)
