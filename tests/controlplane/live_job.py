"""A job of real endpoints on a real switch under a controller, without Mininet or root: its cables are memory."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from running_controller import PATIENT, RunningController, until

from catchment.checkout import ROOT
from catchment.controlplane.controller import certificates
from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.jobs import JobRequest
from catchment.controlplane.topology import star
from catchment.host import Endpoint, EndpointError, Stream
from catchment.host.membership import Credentials, Description, Membership, MembershipError
from catchment.sim.lab.held_address import HeldAddress
from catchment.sim.lab.switch_process import embedded_command, start_switch
from catchment.softswitch.watched_process import WatchedProcess

JOB = "train"
WORKERS, ROOT_HOST = ("w0", "w1", "w2"), "opt"
OUTSIDER = "out"
"""A host that is in no job."""
ELEMENTS = 700
_TIMEOUT = 60.0


class LiveMember:
    """A member that exchanges messages until it is told to end; begins anew whenever its generations are replaced.

    Attributes:
        rounds: messages that it exchanged whole.
        wrong: what differed from what was pushed.
        errors: of its endpoints.
        membership: its place in the job.
        endpoint: the latest.
    """

    def __init__(self, live: LiveJob, host: str, token: str) -> None:
        self.rounds = 0
        self.wrong: list[str] = []
        self.errors: list[EndpointError | TimeoutError] = []
        self.membership = Membership.join(
            controller=live.controller.address,
            job=JOB,
            host=host,
            token=token,
            credentials=Credentials.of(live.controller.certificates, host),
            timeout=_TIMEOUT,
        )
        self.endpoint: Endpoint | None = None
        self._live, self._host = live, host
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=host, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Do not begin another message."""
        self._end.set()
        self.membership.leave()
        if self.endpoint is not None:
            self.endpoint.close(0.0)
        self._thread.join(_TIMEOUT)
        assert not self._thread.is_alive(), f"{self._host} hangs"

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                self.endpoint = self.membership.take(self._open)
                self._exchange(self.endpoint)
            except (EndpointError, TimeoutError) as error:
                self.errors.append(error)
                with suppress(MembershipError):
                    self.membership.superseded(0.5)
            except MembershipError:
                return

    def _open(self, description: Description) -> Endpoint:
        where: dict[str, Any] = {
            "local": description.local,
            "switch": description.switch,
            "port": f"shm:{self._live.folder / self._host}",
            "timeout": _TIMEOUT,
            **self._streams(description),
        }
        return Endpoint.root(**where) if description.role == "root" else Endpoint.worker(wid=description.wid, **where)

    def _streams(self, description: Description) -> dict[str, Stream]:
        """The job's streams; with keys that serve for fewer frames where the job says so."""
        most = self._live.key_frames
        streams = dict(description.streams)
        return {name: replace(one, key_frames=most) for name, one in streams.items()} if most else streams

    def _exchange(self, endpoint: Endpoint) -> None:
        message = 0
        while not self._end.is_set():
            if self._host == ROOT_HOST:
                total = np.zeros(ELEMENTS, np.int32)
                endpoint.pull(total).wait(_TIMEOUT)
                wanted = sum(gradients(self._live.seed, message, w).astype(np.int64) for w in range(len(WORKERS)))
                self._compare(f"the sum of message {message}", total, np.asarray(wanted).astype(np.int32))
                endpoint.push(parameters(self._live.seed, message)).wait(_TIMEOUT)
            else:
                mine = gradients(self._live.seed, message, self.membership.description.wid)
                pushed = endpoint.push(mine)
                layer = np.zeros(ELEMENTS, np.uint8)
                endpoint.pull(layer).wait(_TIMEOUT)
                pushed.wait(_TIMEOUT)
                self._compare(f"the parameters of message {message}", layer, parameters(self._live.seed, message))
            message += 1
            self.rounds += 1

    def _compare(self, what: str, got: NDArray[Any], wanted: NDArray[Any]) -> None:
        differing = int(np.count_nonzero(got != wanted))
        if differing:
            self.wrong.append(f"{self._host}: {differing} elements of {what} are wrong")


def gradients(seed: int, message: int, worker: int) -> NDArray[np.int32]:
    """What a worker pushes as a message."""
    rng = np.random.default_rng((seed, message, worker))
    return rng.integers(-(1 << 28), 1 << 28, ELEMENTS, dtype=np.int32)


def parameters(seed: int, message: int) -> NDArray[np.uint8]:
    """What the root pushes as a message."""
    return np.random.default_rng((seed, message, 1 << 20)).integers(0, 256, ELEMENTS, dtype=np.uint8)


class LiveJob:
    """The job; a context manager.

    Args:
        seed: of the values.
        timing: of the controller.
        tls: the switch's P4Runtime server is at a TCP port, with mutual TLS, and not at a Unix socket.
        key_frames: frames carry tags, and a key serves for so many; 0 without tags.

    Attributes:
        address: of the switch's P4Runtime server.
        topology: a star.
        folder: of the switch's sockets.
        switch: its process.
        controller: in a thread.
        members: by host.
        prometheus: port at which the controller answers it.
    """

    def __init__(self, seed: int, timing: Timing = PATIENT, *, tls: bool = False, key_frames: int = 0) -> None:
        self.seed = seed
        self._tls = tls
        self.topology = star(
            [*WORKERS, ROOT_HOST, OUTSIDER], program=ROOT / "p4src" / "luwu.p4", name="live", lanes=64, slots=256,
            tags=bool(key_frames),
        )  # fmt: skip
        self.key_frames = key_frames
        self._timing = timing
        self._exits = ExitStack()
        self.members: dict[str, LiveMember] = {}

    def __enter__(self) -> LiveJob:
        with ExitStack() as exits:
            self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="catchment-")))
            self.address = f"unix:{self.folder}/grpc"
            certificates_folder = self.folder / "controller" / "certificates"
            if self._tls:
                certificates.make(certificates_folder, self.topology.hosts, switches={"s1": []})
                held = HeldAddress()
                exits.callback(held.close)
                self.address = f"tls:{certificates_folder}@{held.address}"
            self.switch = self._start_switch()
            exits.callback(self._stop_switch)
            self.controller = RunningController(
                self.topology, {"s1": self.address}, self.folder / "controller", self._timing
            )
            scraped = HeldAddress()
            exits.callback(scraped.close)
            address, _, port = scraped.address.rpartition(":")
            self.prometheus = int(port)
            self.controller.settings = replace(self.controller.settings, prometheus=(address, self.prometheus))
            exits.enter_context(self.controller)
            self.until_up()
            with self.controller.operator() as operator:
                self.token = operator.create(
                    JobRequest(JOB, "luwu", WORKERS, ROOT_HOST, 16, tags=bool(self.key_frames))
                ).token
            for host in (*WORKERS, ROOT_HOST):
                self.members[host] = member = LiveMember(self, host, self.token)
                exits.callback(member.end)
            for member in self.members.values():
                member.start()
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _start_switch(self) -> WatchedProcess:
        ports = {host.link.port: f"shm:{self.folder / name}" for name, host in self.topology.hosts.items()}
        command = embedded_command(self.address, 1, ports, "s1")
        return start_switch("s1", command, log=self.folder / "switch.log", environment=os.environ)

    def _stop_switch(self) -> None:
        self.switch.stop()

    def until_up(self) -> None:
        """Wait until the controller keeps the switch right."""
        with self.controller.operator() as operator:
            until(lambda: all(s.state == "up" for s in operator.switches()), "the switch is up")

    def kill_switch(self) -> None:
        self.switch.kill()

    def restart_switch(self) -> None:
        self.switch = self._start_switch()

    def pause_switch(self) -> None:
        os.kill(self.switch.pid, signal.SIGSTOP)

    def resume_switch(self) -> None:
        os.kill(self.switch.pid, signal.SIGCONT)

    def rounds(self) -> dict[str, int]:
        """Messages by member."""
        return {host: member.rounds for host, member in self.members.items()}

    def until_exchanged(self, more: int, seconds: float = 120.0) -> None:
        """Wait until every member has exchanged so many messages more."""
        begin = self.rounds()
        until(
            lambda: all(now >= begin[host] + more for host, now in self.rounds().items()),
            f"every member exchanges {more} messages",
            seconds,
        )

    def log(self) -> str:
        """What the switch wrote."""
        self.switch.catch_up()
        return (self.folder / "switch.log").read_text("utf-8")

    def audit(self) -> str:
        """The controller's audit log."""
        return (self.controller.settings.folder / f"{self.topology.name}.audit.jsonl").read_text("utf-8")

    def wrong(self) -> list[str]:
        """What any member found different."""
        return [text for member in self.members.values() for text in member.wrong]
