"""Every part is killed and started again in the middle of a run: sums stay exact, or the cause is named."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from controlled import ControlledLab, ControlledMember, until

from catchment.controlplane.jobs import JobRequest

WORKERS = ["w0", "w1", "w2", "w3"]
PARTS = ["r1", "sp", "controller", "w0", "opt"]


def all_done(members: dict[str, ControlledMember]) -> int:
    """Everybody's sums are right, in one and the same epoch, which is returned."""
    events = {host: member.event("done") for host, member in members.items()}
    newest = max(event.get("epoch", 0) for event in events.values())
    for host, member in members.items():
        # Whoever was done before the epoch changed does it again.
        while events[host].get("epoch", newest) < newest:
            events[host] = member.event("done")
    assert all(event.get("wrong") == [] for event in events.values()), events
    assert {event["epoch"] for event in events.values()} == {newest}
    for member in members.values():
        member.finish()
    return int(newest)


def kill_and_restart(lab: ControlledLab, part: str, members: dict[str, ControlledMember],
                     again: Callable[[str], ControlledMember]) -> None:  # fmt: skip
    if part == "controller":
        lab.controller.kill()
        lab.controller.start()
    elif part in lab.topology.switches:
        lab.network.kill_switch(part)
        lab.network.start_switch(part)
    else:
        members[part].kill()
        members[part] = again(part)


def run_with_a_restart(lab: ControlledLab, part: str, seed: int) -> None:
    with lab.job("train", WORKERS) as token:
        members = lab.start("train", token, [*WORKERS, "opt"], seed=seed, workers=len(WORKERS))
        for member in members.values():
            assert member.event("started") == {"started": True}
        kill_and_restart(
            lab, part, members, lambda host: lab.start("train", token, [host], seed=seed, workers=len(WORKERS))[host]
        )
        epoch = all_done(members)
        assert epoch == (2 if part in members else 1), "only who loses its state costs a generation"
    lab.wait_until_up()


@pytest.mark.sampled(4)
def test_something_dies_and_comes_back(controlled: ControlledLab, rng: random.Random) -> None:
    """One part at random; `make test-full` kills each."""
    part = rng.choice(PARTS)
    print(f"kills {part}")
    run_with_a_restart(controlled, part, rng.randrange(1 << 32))


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_each_part_dies_and_comes_back(controlled: ControlledLab, part: str, rng: random.Random) -> None:
    run_with_a_restart(controlled, part, rng.randrange(1 << 32))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("victim", ["w2", pytest.param("opt", marks=pytest.mark.slow)])
def test_who_does_not_come_back_is_named(controlled: ControlledLab, victim: str, rng: random.Random) -> None:
    with controlled.job("train", WORKERS) as token:
        members = controlled.start(
            "train", token, [*WORKERS, "opt"], seed=rng.randrange(1 << 32), workers=len(WORKERS), timeout=10.0
        )
        for member in members.values():
            member.event("started")
        members.pop(victim).kill()
        for host, member in members.items():
            event = member.event("error")
            assert f"{victim} is lost" in event.get("trouble", ""), (host, event)


@pytest.mark.slow
def test_whoever_never_joins_is_named(controlled: ControlledLab, rng: random.Random) -> None:
    with controlled.job("train", WORKERS) as token:
        members = controlled.start(
            "train", token, ["w0", "w1", "w2", "opt"], seed=rng.randrange(1 << 32), workers=len(WORKERS), timeout=10.0
        )
        for host, member in members.items():
            event = member.event("error")
            assert "w3 has not joined" in event.get("trouble", ""), (host, event)


@pytest.mark.sampled(4)
def test_several_jobs_on_a_tree_at_once_with_loss(controlled: ControlledLab, rng: random.Random) -> None:
    """Sums to the root and parameters back, and two all-reduces, over the same racks and hosts."""
    jobs: dict[str, tuple[list[str], str | None]] = {
        "luwu": (WORKERS, "opt"),
        "all": (["w3", "w0", "w1"], None),
        "rack": (["w2", "w3"], None),
    }
    sizes = [1, controlled.lanes, controlled.lanes + 1, controlled.sizes[0] // 4, 777]
    with controlled.loss(0.01), ExitStack() as exits:
        running = []
        for name, (workers, root) in jobs.items():
            token = exits.enter_context(controlled.job(name, workers, root=root, slots=8))
            hosts = [*workers, *([root] if root else [])]
            members = controlled.start(
                name, token, hosts, seed=rng.randrange(1 << 32), workers=len(workers), sizes=sizes
            )
            running.append(members)
        for members in running:
            assert all_done(members) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_many_jobs_leave_nothing(controlled: ControlledLab, count: int, rng: random.Random) -> None:
    before = controlled.contents()
    names: list[str] = []
    for number in range(count):
        while len(names) > rng.randrange(6):
            controlled.operator.remove(names.pop(rng.randrange(len(names))))
        workers = rng.sample(WORKERS, rng.randint(1, 4))
        kind, root = rng.choice([("luwu", "opt"), ("allreduce", None)])
        slots = 1 << rng.randrange(7)
        controlled.operator.create(JobRequest(f"n{number}", kind, workers, root, slots))
        names.append(f"n{number}")
    for name in names:
        controlled.operator.remove(name)
    assert controlled.operator.jobs() == []
    assert controlled.contents() == before
    slots = controlled.topology.switch("sp").slots
    with controlled.job("whole", WORKERS, root=None, slots=slots):
        assert controlled.contents() != before, "every slot is free again"
    assert controlled.contents() == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize("switch", [None, *(pytest.param(s, marks=pytest.mark.slow) for s in ("r1", "sp"))])
def test_a_switch_that_hangs_is_named_and_goes_on(
    controlled: ControlledLab, switch: str | None, rng: random.Random
) -> None:
    """Stopped, not dead: its connections stand. It is named, and when it runs again, every sum is right."""
    switch = switch or rng.choice(["r1", "sp"])
    print(f"stops {switch}")
    with controlled.job("train", WORKERS) as token:
        members = controlled.start("train", token, [*WORKERS, "opt"], seed=rng.randrange(1 << 32), workers=len(WORKERS))
        for member in members.values():
            assert member.event("started") == {"started": True}
        with controlled.network.stopped_switch(switch):
            found = until(lambda: controlled.operator.job("train").trouble, "somebody notices")
            assert found.startswith(f"switch {switch} ("), found
            assert "hangs: no answer for" in found
            down = [s.name for s in controlled.operator.switches() if s.state == "down"]
            assert down == [switch]
        assert all_done(members) == 1
        until(lambda: not controlled.operator.job("train").trouble, "all is well again")
    controlled.wait_until_up()
