"""Verbs that change a job without a controller, where a switch is dead: it is in the way of what needs it alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command_lab import Run, as_json, give_up_soon, held_by_jobs
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake

from catchment.cli import target
from catchment.cli.job_switches import looked_at
from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.networks.state import NetworkState

S2 = "  s2: {{program: luwu.p4, ip: 10.0.0.253, mac: 02:00:00:00:fe:02, grpc: {address}}}\n"
HERE = ("-w", "w0", "--root", "opt")
BOTH = ("-w", "w0,w1", "--root", "opt")


@pytest.fixture
def second(topology: Path) -> Iterator[RunningFake]:
    """Another switch, with w1 on it."""
    with RunningFake(FakeSwitch(p4info=fake_p4info())) as running:
        text = topology.read_text().replace("hosts:\n", S2.format(address=running.address) + "hosts:\n")
        topology.write_text(text.replace("link: s1:2", "link: s2:2") + "links:\n  - [s1:9, s2:9]\n")
        yield running


@pytest.fixture
def dead(run: Run, second: RunningFake, monkeypatch: pytest.MonkeyPatch) -> RunningFake:
    """That switch once it is dead: job `train` is on both, `here` on the other one."""
    run("job", "create", "train", *BOTH)
    run("job", "create", "here", *HERE)
    second.stop()
    give_up_soon(monkeypatch, second)
    return second


@pytest.mark.usefixtures("dead")
def test_a_job_elsewhere_is_made_renewed_and_removed(run: Run, fake: RunningFake) -> None:
    before = as_json(run, "job", "show", "here")["members"]
    run("job", "renew", "here")
    assert as_json(run, "job", "show", "here")["members"] != before
    run("job", "create", "other", *HERE)
    run("job", "remove", "here")
    run("job", "remove", "other")
    gens = {entry.match["gen"] for entry in held_by_jobs(fake)[0]}
    streams = as_json(run, "job", "show", "train")["members"]["w0"]
    assert gens == {streams[name]["gen"] for name in ("gradients", "parameters")}


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize("words", [("create", "other", *BOTH), ("renew", "train"), ("remove", "train")])
def test_the_switch_that_a_job_needs_is_named(run: Run, words: tuple[str, ...], fake: RunningFake) -> None:
    held = held_by_jobs(fake)
    said = run("job", *words, code=1)
    assert f"job {words[1]} needs switch s2, which does not answer" in said and "start the switch" in said
    assert ("`catchment job remove train --force`" in said) == (words[0] == "remove")
    assert [one["name"] for one in as_json(run, "job", "list")] == ["train", "here"]
    assert held_by_jobs(fake) == held


def test_in_an_emulated_network_it_is_to_be_restarted(
    run: Run, second: RunningFake, topology: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = NetworkState("lab", 1, str(topology), {}, ready=True)
    monkeypatch.setattr(target, "is_held", lambda _: True)
    monkeypatch.setattr(target, "read_state", lambda _: network)
    run("job", "create", "train", *BOTH)
    second.stop()
    give_up_soon(monkeypatch, second)
    said = run("job", "remove", "train", code=1)
    assert "needs switch s2, which does not answer: `catchment net restart s2` brings it back; or" in said
    assert "net up" not in said and "`catchment job remove train --force`" in said


def test_a_switch_that_dies_while_a_job_is_removed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("job", "create", "train", *HERE)
    error = SwitchError("switch s1: Deadline Exceeded", code="DEADLINE_EXCEEDED")
    monkeypatch.setattr(SwitchClient, "delete", lambda *_: (_ for _ in ()).throw(error))
    said = run("job", "remove", "train", code=1)
    assert "Deadline Exceeded" in said and "`catchment job remove train --force`" in said


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize("words", [("create", "other", *HERE), ("renew", "here")])
def test_every_switch_is_needed_once_generations_have_run_out(
    run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "MOST_GENERATIONS", 1 << 16)
    said = run("job", *words, code=1)
    assert "needs switch s2" in said and "every switch must forget the old ones" in said


def test_what_was_left_on_a_switch_goes_with_the_next_job_there(
    run: Run, second: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("job", "create", "train", *BOTH)
    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "delete", lambda *_: (_ for _ in ()).throw(SwitchError("no", code="UNAVAILABLE")))
        run("job", "remove", "train", "--force")
    run("job", "create", "here", *HERE)
    left = held_by_jobs(second)
    assert left[0], "this test tests nothing"
    run("job", "create", "other", *BOTH)
    assert not {entry.match["gen"] for entry in left[0]} & {entry.match["gen"] for entry in held_by_jobs(second)[0]}


@pytest.mark.usefixtures("second")
def test_switches_to_be_looked_at_are_connected_at_the_same_time() -> None:
    """Those that are dead are left out, and take as long as one of them."""
    names = [f"s{number}" for number in range(64)]
    all_are_asked, closed = threading.Barrier(len(names)), []

    @contextmanager
    def connect(switch: str, *, read_only: bool) -> Iterator[str]:
        assert read_only
        all_are_asked.wait(20)
        if int(switch[1:]) % 2:
            raise SwitchError(f"switch {switch} is dead", code="UNAVAILABLE")
        yield switch
        closed.append(switch)

    with looked_at(cast(Any, SimpleNamespace(connect=connect)), names) as clients:
        assert set(clients) == set(names[::2]) and not closed
    assert set(closed) == set(names[::2])


@pytest.mark.usefixtures("second")
def test_diagnose_waits_for_dead_switches_at_the_same_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("job", "create", "train", *BOTH)
    both_are_asked = threading.Barrier(2)

    def connect(*_: object, name: str, **__: object) -> SwitchClient:
        both_are_asked.wait(20)
        raise SwitchError(f"switch {name} is dead", code="UNAVAILABLE")

    monkeypatch.setattr(SwitchClient, "connect", connect)
    said = run("diagnose", "train", "--seconds", "0.05", code=3)
    assert "switch s1 does not answer" in said and "switch s2 does not answer" in said


def test_every_switch_that_is_dead_is_named(
    run: Run, fake: RunningFake, second: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("job", "create", "train", *BOTH)
    fake.stop()
    second.stop()
    give_up_soon(monkeypatch, fake, second)
    said = run("job", "renew", "train", code=1)
    assert said.count("does not answer") == 1 and "; nor does switch s" in said
    assert {name for name in ("s1", "s2") if f"switch {name}" in said} == {"s1", "s2"}


def test_a_job_that_cannot_be_planned_is_refused_before_a_switch_is_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SwitchClient, "connect", lambda *_, **__: pytest.fail("a switch is asked"))
    assert "nobody" in run("job", "create", "train", "-w", "nobody", "--root", "opt", code=1)
    assert "no job 'train'" in run("job", "remove", "train", code=1)
