"""Job verbs without a controller that are cut short: what stays on a switch is in nobody's way."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from command_lab import Run, held_by_jobs
from fake_switch import RunningFake

from catchment.cli import job as job_verbs
from catchment.controlplane.client import MulticastGroup, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.deployment.fabric import provide_forwarding
from catchment.controlplane.jobs import JobError
from catchment.controlplane.jobs.turn import turn
from catchment.controlplane.topology import Topology

CREATE = ("job", "create", "train", "--workers", "w0,w1", "--root", "opt", "--slots", "16")


@pytest.fixture(autouse=True)
def forwarding(topology: Path, fake: RunningFake) -> None:
    """Have it there already: what the verbs write is the job's."""
    with SwitchClient.connect(fake.address, timeout=60.0) as client:
        assert provide_forwarding(Topology.load(topology), "s1", client)


def generations(fake: RunningFake) -> set[int]:
    return {int(entry.match["gen"]) for entry in held_by_jobs(fake)[0]}


def cut_short(
    monkeypatch: pytest.MonkeyPatch, of: str, *, nth: int, by: Callable[[], BaseException], lasting: bool = False
) -> None:
    """Have the `nth` call of a method of clients do what it should, and then end otherwise; all others, if lasting."""
    real = getattr(SwitchClient, of)
    calls = [0]

    def ending(self: SwitchClient, *arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] <= nth:
            real(self, *arguments)
        if calls[0] == nth or (lasting and calls[0] > nth):
            raise by()
        return None if calls[0] < nth else real(self, *arguments)

    monkeypatch.setattr(SwitchClient, of, ending)


def no_answer() -> SwitchError:
    return SwitchError("switch s1: Deadline Exceeded", code="DEADLINE_EXCEEDED")


@pytest.mark.parametrize("nth", [1, 2])
def test_ctrl_c_in_job_create_leaves_nothing(
    run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    with monkeypatch.context() as patch:
        cut_short(patch, "insert", nth=nth, by=KeyboardInterrupt)
        run(*CREATE, code=130)
    assert held_by_jobs(fake) == ([], {})
    assert json.loads(run("job", "list", "--json")) == []
    run(*CREATE)


@pytest.mark.parametrize("nth", [1, 2])
def test_what_a_switch_wrote_late_is_in_nobodys_way(
    run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    with monkeypatch.context() as patch:
        cut_short(patch, "insert", nth=nth, by=no_answer)
        patch.setattr(SwitchClient, "delete", lambda *_: (_ for _ in ()).throw(no_answer()))
        assert "Deadline Exceeded" in run(*CREATE, code=1)
    old = generations(fake)
    assert old, "this test tests nothing"
    run(*CREATE)
    new = generations(fake)
    assert new and not new & old
    assert len(held_by_jobs(fake)[1]) == 1
    run("job", "remove", "train")
    assert held_by_jobs(fake) == ([], {})


def test_job_renew_after_one_that_was_cut_short(run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*CREATE)
    old = generations(fake)
    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "insert", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        run("job", "renew", "train", code=130)
    assert generations(fake) == old
    run("job", "renew", "train")
    stored = json.loads(run("job", "show", "train", "--json"))["members"]["w0"]
    assert generations(fake) == {stored[name]["gen"] for name in ("gradients", "parameters")}
    assert len(held_by_jobs(fake)[1]) == 1


def interrupted(
    monkeypatch: pytest.MonkeyPatch, where: object, of: str, *, times: int, by: signal.Signals = signal.SIGINT
) -> None:
    """Have Ctrl-C, or another signal, come so often before each call of a function."""
    real = getattr(where, of)

    def interrupted(*arguments: Any) -> Any:
        for _ in range(times):
            signal.raise_signal(by)
        return real(*arguments)

    monkeypatch.setattr(where, of, interrupted)


@pytest.mark.parametrize(("where", "of"), [(lifecycle, "renew"), (SwitchClient, "insert"), (SwitchClient, "delete")])
def test_ctrl_c_in_job_renew_leaves_the_new_generations(
    run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch, where: object, of: str
) -> None:
    run(*CREATE)
    before = held_by_jobs(fake)
    with monkeypatch.context() as patch:
        interrupted(patch, where, of, times=1)
        run("job", "renew", "train", code=130)
    stored = json.loads(run("job", "show", "train", "--json"))["members"]["w0"]
    after = held_by_jobs(fake)
    assert generations(fake) == {stored[name]["gen"] for name in ("gradients", "parameters")}
    assert generations(fake).isdisjoint(int(entry.match["gen"]) for entry in before[0])
    assert [entry.table for entry in after[0]] == [entry.table for entry in before[0]]
    assert after[1] == before[1]


def test_a_second_ctrl_c_in_job_renew_counts_at_once(
    run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*CREATE)
    before = held_by_jobs(fake)
    with monkeypatch.context() as patch:
        interrupted(patch, SwitchClient, "insert", times=2)
        run("job", "renew", "train", code=130)
    assert held_by_jobs(fake) == before


def test_sigterm_in_job_create_leaves_nothing(run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        interrupted(patch, SwitchClient, "insert", times=2, by=signal.SIGTERM)
        interrupted(patch, SwitchClient, "delete", times=2, by=signal.SIGTERM)
        run(*CREATE, code=143)
    assert held_by_jobs(fake) == ([], {})
    assert json.loads(run("job", "list", "--json")) == []


def test_sigterm_in_job_renew_leaves_the_new_generations(
    run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*CREATE)
    before = generations(fake)
    with monkeypatch.context() as patch:
        interrupted(patch, SwitchClient, "insert", times=2, by=signal.SIGTERM)
        run("job", "renew", "train", code=143)
    assert len(generations(fake)) == len(before) and generations(fake).isdisjoint(before)


@pytest.mark.parametrize(("of", "force"), [("remove", ()), ("remove_where_possible", ("--force",))])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_removal_that_a_signal_cuts_short_is_told_of(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, of: str, force: tuple[str, ...]
) -> None:
    run(*CREATE)
    said: list[str] = []
    with monkeypatch.context() as patch:
        interrupted(patch, lifecycle, of, times=1, by=number)
        patch.setattr(typer, "echo", lambda text="", **_: said.append(str(text)))
        run("job", "remove", "train", *force, code=128 + number)
    assert any("`catchment job remove train` completes it" in text for text in said)
    run("job", "remove", "train")


def test_what_others_put_on_a_switch_stays(run: Run, fake: RunningFake) -> None:
    """Another control plane's job, and groups of people: neither has this control plane's mark."""
    with SwitchClient.connect(fake.address, timeout=60.0) as client:
        worker: dict[str, int | str] = dict.fromkeys(
            ("mode", "wid", "own", "mask", "full", "up_port", "up_wid", "src_ip", "src_udp"), 1
        )
        worker |= {"job": 63, "group": 77, "base": 512, "src_ip": "10.0.0.9"}
        theirs = TableEntry("jobs", {"gen": 7, "port": 1}, "worker", worker, metadata=b"catchment of somebody else")
        client.insert(theirs, MulticastGroup.of_ports(77, [1]), MulticastGroup.of_ports(99, [1]))
    before = held_by_jobs(fake)
    run(*CREATE)
    run("job", "remove", "train")
    assert held_by_jobs(fake) == before


def test_force_takes_the_job_off_switches_that_answer(
    run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*CREATE)
    assert "removed" in run("job", "remove", "train", "--force")
    assert held_by_jobs(fake) == ([], {})
    run(*CREATE)
    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "delete", lambda *_: (_ for _ in ()).throw(no_answer()))
        assert "removed" in run("job", "remove", "train", "--force")
    assert json.loads(run("job", "list", "--json")) == []
    assert generations(fake)
    run(*CREATE)
    assert len(held_by_jobs(fake)[1]) == 1


def test_verbs_that_change_jobs_take_turns(
    run: Run, fake: RunningFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal that begins while the job is removed writes nothing after that."""
    run(*CREATE)
    between, outcome = threading.Event(), []
    real = lifecycle.remove

    def remove(*arguments: Any) -> None:
        thread.start()
        between.wait(0.3)  # a renewal that does not wait for its turn comes through
        real(*arguments)

    def renew() -> None:
        try:
            job_verbs.renew("train", None)
        except JobError as error:
            outcome.append(str(error))
        between.set()

    thread = threading.Thread(target=renew)
    monkeypatch.setenv("CATCHMENT_TOPOLOGY", str(tmp_path / "lab.yaml"))
    monkeypatch.setattr(lifecycle, "remove", remove)
    place = job_verbs.find_place(tmp_path / "lab.yaml")
    monkeypatch.setattr(job_verbs, "find_place", lambda _: place)
    job_verbs.remove("train", topology=None)
    thread.join(60)
    assert ["no job 'train'" in text for text in outcome] == [True]
    assert held_by_jobs(fake) == ([], {})


def test_a_command_that_does_not_end_is_told_of(tmp_path: Path) -> None:
    with (
        turn(tmp_path, "lab", patience=1.0),
        pytest.raises(JobError, match="another command has been changing the jobs of lab"),
        turn(tmp_path, "lab", patience=0.05),
    ):
        pass
    with turn(tmp_path, "lab", patience=0.05):
        pass
