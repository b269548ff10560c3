"""Random schedules of faults under a job of real endpoints: no sum is wrong, no job is lost, and it goes on afterwards.

What befalls it: its switch is killed or paused, its controller ends, links lose all or a part, entries are deleted, the
clock jumps, the disk is full. A test that fails names its schedule; `CATCHMENT_SEED` makes the same again.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest
from clock_and_disk import ClockAndDisk
from live_job import JOB, LiveJob

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.networks.state import admin_socket
from catchment.softswitch.admin import SwitchAdmin

_STEPS, _LONGEST = 6, 0.4


class Schedule(ClockAndDisk):
    """One schedule on one job.

    Attributes:
        said: what was done, in order.
    """

    def __init__(self, live: LiveJob, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(rng, monkeypatch)
        self.said: list[str] = []
        self._live = live

    def run(self, steps: int) -> None:
        """Do so many random things, then end the faults."""
        deeds: list[Callable[[], str]] = [
            self._kill_switch, self._pause_switch, self._restart_controller, self._cut_link, self._lose_frames,
            self._damage, self._set_clock, self._fill_disk, self._free_disk,
        ]  # fmt: skip
        for _ in range(steps):
            self.said.append(self._rng.choice(deeds)())
            self._while_it_runs()
        self.said.append(self._free_disk())

    def _while_it_runs(self) -> str:
        seconds = self._rng.uniform(0, _LONGEST)
        threading.Event().wait(seconds)
        return f"for {seconds:.2f} s"

    def _kill_switch(self) -> str:
        self._live.kill_switch()
        during = self._rng.choice([self._while_it_runs, self._set_clock, self._fill_disk])()
        self._live.restart_switch()
        return f"kill the switch; meanwhile: {during}"

    def _pause_switch(self) -> str:
        self._live.pause_switch()
        during = self._while_it_runs()
        self._live.resume_switch()
        return f"pause the switch {during}"

    def _restart_controller(self) -> str:
        self._live.controller.stop()
        during = self._rng.choice([self._while_it_runs, self._set_clock, self._damage])()
        self._live.controller.start()
        return f"restart the controller; meanwhile: {during}"

    def _cut_link(self) -> str:
        return self._faults("loss=1")

    def _lose_frames(self) -> str:
        return self._faults("loss=0.2,dup=0.1,reorder=0.1")

    def _faults(self, spec: str) -> str:
        path = admin_socket(self._live.address)
        port = self._rng.randrange(1, 1 + len(self._live.topology.hosts))
        assert path is not None
        with SwitchAdmin(path) as admin:
            admin.set_faults(port, spec)
            during = self._while_it_runs()
            admin.set_faults(port, "off")
        return f"{spec} at port {port} {during}"

    def _damage(self) -> str:
        table = self._rng.choice(["jobs", "receivers", "l2", "bindings"])
        try:
            with SwitchClient.connect(self._live.address, name="s1", timeout=60.0) as client:
                entries = client.read(table)
                chosen = self._rng.sample(entries, self._rng.randint(0, len(entries)))
                client.delete(*chosen)
        except SwitchError as error:  # it is being restored: the controller was quicker
            return f"damage {table}: {error}"
        return f"delete {len(chosen)} of {table}"


def converge(schedule: Schedule, live: LiveJob) -> float:
    """Let a schedule happen; seconds from its last fault to when every member has exchanged messages again."""
    schedule.run(_STEPS)
    ended = time.monotonic()
    try:
        live.until_exchanged(2)
        took = time.monotonic() - ended
        live.until_up()
        assert live.wrong() == []
        with live.controller.operator() as operator:
            assert [job.name for job in operator.jobs()] == [JOB]
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), "after:", *schedule.said])) from None
    return took


def test_no_schedule_makes_a_sum_wrong_or_ends_a_job(
    seed: int, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveJob(seed) as live:
        live.until_exchanged(2)
        converge(Schedule(live, rng, monkeypatch), live)


@pytest.mark.slow
@pytest.mark.timeout(14400)
def test_no_schedule_of_a_thousand_makes_a_sum_wrong(
    seed: int, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """The report (`--junit-xml`) says how long the slowest took: less than 5 s on a machine that does nothing else."""
    took = []
    with LiveJob(seed) as live:
        live.until_exchanged(2)
        for number in range(1000):
            with monkeypatch.context() as patch:
                took.append(converge(Schedule(live, random.Random(f"{seed}-{number}"), patch), live))
    record_property("longest_seconds", max(took))
