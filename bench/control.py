"""`make bench-control`: how fast the controller makes jobs, restores switches and notices the dead.

One embedded switch with 33 hosts that exist as table entries only; the controller and the members are processes. A
member dies in two ways: killed (its connection ends) and stopped (it just falls silent).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from bench import control_entries
from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.jobs import JobRequest
from catchment.controlplane.topology import Target, Topology, star
from catchment.host.membership import Credentials, Membership
from catchment.sim.lab.controller_process import ControllerProcess
from catchment.sim.lab.held_address import HeldAddress
from catchment.sim.lab.switch_process import COMMANDS, start_switch
from catchment.softswitch.watched_process import WatchedProcess

WORKERS = 32
JOBS, RESTORES, LOSSES = 20, 5, 3
CREATE_AIM, GROUP_AIM, RESTORE_AIM, DETECT_AIM = 0.1, 0.2, 1.0, 2.0
GROUP = 16
"""Jobs of the group, each of as many workers with an optimizer node of its own: 32 hosts in all."""
_MEMBER = """
import sys, time
from pathlib import Path
from catchment.host.membership import Credentials, Membership
address, folder, host, token = sys.argv[1:]
with Membership.join(
    controller=address, job="watched", host=host, token=token, credentials=Credentials.of(Path(folder), host)
):
    time.sleep(1.0)  # lives for a while first
    print("joined", flush=True)
    sys.stdin.read()
"""


def request(name: str, slots: int = 16) -> JobRequest:
    """A LuWu job of 32 workers."""
    return JobRequest(name, "luwu", tuple(f"w{i}" for i in range(WORKERS)), "opt", slots)


def group_request(name: str, slots: int = 16) -> JobRequest:
    """A group of LuWu jobs with the same workers and an optimizer node each."""
    hosts = tuple(f"w{i}" for i in range(2 * GROUP))
    return JobRequest(name, "luwu", hosts[:GROUP], None, slots, roots=hosts[GROUP:])


def group_creations(operator: OperatorClient) -> list[float]:
    """Seconds from the request to the answer; every job of the group is on the switch then."""
    times = []
    for _ in range(RESTORES):
        began = time.perf_counter()
        operator.create(group_request("group"))
        times.append(time.perf_counter() - began)
        operator.remove("group")
    return times


def creations(operator: OperatorClient) -> list[float]:
    """Seconds from the request to the answer; the job is on the switch then."""
    times = []
    for number in range(JOBS):
        began = time.perf_counter()
        operator.create(request(f"job{number}"))
        times.append(time.perf_counter() - began)
    return times


def restores(operator: OperatorClient, start: Callable[[], WatchedProcess], switch: WatchedProcess) -> list[float]:
    """Seconds from the moment a restarted switch listens until program, forwarding and every job are back."""
    times = []
    for _ in range(RESTORES):
        before = operator.switches()[0].restores
        switch.kill()
        switch = start()
        began = time.perf_counter()
        while not ((status := operator.switches()[0]).state == "up" and status.restores > before):
            time.sleep(0.005)
        times.append(time.perf_counter() - began)
    switch.stop()
    return times


@contextlib.contextmanager
def member(controller: ControllerProcess, host: str, token: str) -> Iterator[subprocess.Popen[str]]:
    """A member as a process."""
    command = [sys.executable, "-c", _MEMBER, controller.address, str(controller.certificates), host, token]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "joined\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def detections(controller: ControllerProcess, token: str, number: signal.Signals) -> list[float]:
    """Seconds from a member's end until another member has been told its name and the new generations."""
    times = []
    credentials = Credentials.of(controller.certificates, "w0")
    for _ in range(LOSSES):
        with (
            Membership.join(
                controller=controller.address, job="watched", host="w0", token=token, credentials=credentials
            ) as witness,
            member(controller, "w1", token) as process,
        ):
            epoch = witness.epoch
            began = time.perf_counter()
            os.kill(process.pid, number)
            while "w1 is lost" not in witness.cause or witness.epoch == epoch:
                time.sleep(0.002)
            times.append(time.perf_counter() - began)
    return times


def aim(name: str, seconds: list[float], limit: float) -> Figure:
    """A time beside the limit that it must stay under."""
    return Figure(name, median(seconds) * 1000, "ms", "aim", limit * 1000, 1.0)


def main() -> None:
    """Measure and report."""
    topology: Topology = star(
        [*(f"w{i}" for i in range(WORKERS)), "opt"], program=ROOT / "p4src" / "luwu.p4", name="bench-control"
    )
    with HeldAddress() as held, tempfile.TemporaryDirectory(prefix="ctl") as name:
        address = held.address
        folder = Path(name)

        def start() -> WatchedProcess:
            command = COMMANDS[Target.EMBEDDED](address, 1, {})
            return start_switch("s1", command, log=folder / "switch.log", environment=dict(os.environ))

        switch = start()
        with ControllerProcess(topology, {"s1": address}, folder) as controller, controller.operator() as operator:
            while operator.switches()[0].state != "up":
                time.sleep(0.01)
            created = creations(operator)
            restored = restores(operator, start, switch)
            for number in range(JOBS):
                operator.remove(f"job{number}")
            switch = start()
            while operator.switches()[0].state != "up":
                time.sleep(0.01)
            token = operator.create(request("watched")).token
            killed = detections(controller, token, signal.SIGKILL)
            stopped = detections(controller, token, signal.SIGSTOP)
            operator.remove("watched")
            group_created = group_creations(operator)
            token = operator.create(group_request("watched")).token
            group_renewed = detections(controller, token, signal.SIGKILL)
            group_restored = restores(operator, start, switch)
    publish(
        "bench-control",
        [
            aim(f"create a job of {WORKERS} workers on one switch", created, CREATE_AIM),
            aim(f"restore a restarted switch with {JOBS} such jobs", restored, RESTORE_AIM),
            aim("notice a killed worker, tell the others", killed, DETECT_AIM),
            aim("notice a worker that falls silent, tell the others", stopped, DETECT_AIM),
            aim(f"create a group of {GROUP} jobs over {2 * GROUP} hosts", group_created, GROUP_AIM),
            aim("restore a restarted switch with that group", group_restored, RESTORE_AIM),
            aim("renew the group after a killed worker, tell the others", group_renewed, DETECT_AIM),
            *control_entries.figures(),
        ],
        [
            "Times are medians: a ratio below 1 meets the aim; rates above 1. Slowest: creation "
            f"{max(created) * 1000:.0f} ms, restore {max(restored) * 1000:.0f} ms, killed {max(killed) * 1000:.0f} ms, "
            f"silent {max(stopped) * 1000:.0f} ms."
        ],
    )


if __name__ == "__main__":
    main()
