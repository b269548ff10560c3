"""Random schedules of faults: whatever happens to switches, controller, clock and disk, no job is lost.

When the faults end, every switch holds what its jobs ask for, and nothing else. A schedule is drawn from a seed: a test
that fails names it, and `CATCHMENT_SEED` makes the same again.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from clock_and_disk import ClockAndDisk
from running_controller import PATIENT, SWITCHES, Place, request, until, use_fake_programs
from test_convergence import connect

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.deployment.fabric import share_of
from catchment.controlplane.deployment.store import read_store
from catchment.controlplane.state.desired import SwitchConfig

STEPS = 8


class Schedule(ClockAndDisk):
    """One schedule on one network.

    Attributes:
        jobs: those that must be there, by name.
        said: what was done, in order.
    """

    def __init__(self, place: Place, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(rng, monkeypatch)
        self.jobs: set[str] = set()
        self.said: list[str] = []
        self._place = place

    def run(self, steps: int) -> None:
        """Do so many random things, then end the faults."""
        deeds: list[Callable[[], str]] = [
            self._create, self._create, self._remove, self._kill_switch, self._kill_controller, self._damage,
            self._set_clock, self._fill_disk, self._free_disk,
        ]  # fmt: skip
        for _ in range(steps):
            self.said.append(self._rng.choice(deeds)())
        self.said.append(self._free_disk())

    def _create(self) -> str:
        name, workers = f"job{len(self.said)}", self._rng.sample(["w0", "w1", "w2", "w3"], self._rng.randint(1, 4))
        try:
            with self._place.controller.operator() as operator:
                operator.create(request(name, 1 << self._rng.randrange(5), tuple(workers)))
        except ControllerError as error:
            return f"create {name}: {error}"
        self.jobs.add(name)
        return f"create {name} on {workers}"

    def _remove(self) -> str:
        if not self.jobs:
            return "nothing to remove"
        name = self._rng.choice(sorted(self.jobs))
        try:
            with self._place.controller.operator() as operator:
                operator.remove(name)
        except ControllerError as error:
            return f"remove {name}: {error}"
        self.jobs.remove(name)
        return f"remove {name}"

    def _kill_switch(self) -> str:
        name = self._rng.choice(SWITCHES)
        during = self._rng.choice([self._create, self._remove, self._set_clock])
        self._place.restart_switch(name, lambda: self.said.append(during()))
        return f"restart {name}"

    def _kill_controller(self) -> str:
        self._place.controller.stop()
        damaged = self._damage()
        self._place.controller.start()
        return f"restart the controller; meanwhile: {damaged}"

    def _damage(self) -> str:
        name = self._rng.choice(SWITCHES)
        table = self._rng.choice(["jobs", "receivers", "l2", "bindings", "switch_addresses"])
        try:
            with connect(self._place, name) as client:
                entries = client.read(table)
                chosen = self._rng.sample(entries, self._rng.randint(0, len(entries)))
                client.delete(*chosen)
        except Exception as error:  # the switch is being restored: the controller was quicker
            return f"damage {table} of {name}: {error}"
        return f"delete {len(chosen)} of {table} of {name}"

    def has_converged(self) -> bool:
        """Whether all is as the jobs that must be there ask for."""
        place = self._place
        with place.controller.operator() as operator:
            if {job.name for job in operator.jobs()} != self.jobs or any(s.state != "up" for s in operator.switches()):
                return False
        try:
            stored = read_store(place.topology, place.controller.settings.folder)
        except sqlite3.Error:
            return False
        if set(stored.jobs) != self.jobs:
            return False
        try:
            return all(self._holds(name, share_of(name, place.topology, stored.deployed)) for name in SWITCHES)
        except SwitchError:  # it was restarted, and its controller has not noticed yet
            return False

    def _holds(self, switch: str, wanted: Sequence[SwitchConfig]) -> bool:
        with connect_to_look(self._place, switch) as client:
            has = {client.value(entry) for entry in client.read() if not entry.is_default}
            should = {client.value(e) for part in wanted for e in part.entries if not e.is_default}
            groups = {number: sorted(ports) for part in wanted for number, ports in part.groups.items()}
            return has == should and {n: sorted(p) for n, p in client.groups().items()} == groups


def connect_to_look(place: Place, switch: str) -> SwitchClient:
    """A client that does not take the switch from its controller."""
    device = place.topology.switch(switch).device_id
    return SwitchClient.connect(place.fakes[switch].address, device, read_only=True, timeout=60.0)


def check(schedule: Schedule, steps: int) -> None:
    schedule.run(steps)
    try:
        until(schedule.has_converged, "the network converges")
    except AssertionError:
        raise AssertionError("\n".join(["no convergence after:", *schedule.said])) from None


@pytest.mark.sampled(4)
@pytest.mark.parametrize("timing", [PATIENT], ids=["patient"])
@pytest.mark.parametrize("number", range(3))
def test_no_schedule_of_faults_loses_a_job(
    number: int, place: Place, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(Schedule(place, rng, monkeypatch), STEPS)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_no_schedule_of_a_thousand_loses_a_job(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1000):
        folder = tmp_path / str(number)
        folder.mkdir()
        use_fake_programs(monkeypatch, folder)
        place = Place(folder, PATIENT)
        with place.exits, monkeypatch.context() as patch:
            check(Schedule(place, random.Random(f"{seed}-{number}"), patch), STEPS)
