"""A controller in a thread of this process, on switches in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_switch import FakeSwitch, RunningFake

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller import certificates, core
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.controller.run import serve
from catchment.controlplane.controller.settings import Settings, Timing
from catchment.controlplane.jobs import JobRequest
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.topology import Topology, racks
from catchment.host import Endpoint
from catchment.host.membership import Credentials, Description, Membership
from catchment.sim.lab.held_address import HeldAddress

SWITCHES = ("sp", "r1", "r2")
QUICK = Timing(beat=0.05, silence=10.0, reunion=0.3, check=0.02, compare=0.2, request=60.0, hang=10.0)
"""Who breaks its connection is lost soon; for silence only who is silent much longer than a slow machine is."""
LISTENING = replace(QUICK, silence=6.0)
"""The timing of tests in which silence itself tells; the others are heard a hundred times in it."""
PATIENT = replace(QUICK, silence=60.0, reunion=30.0)
"""The timing of tests that lose no member."""


def programs(topology: Topology, folder: Path) -> dict[str, PipelineConfig]:
    """Nothing that runs: the switches in memory take any bytes with the P4Info of our program."""
    config = folder / "program.so"
    config.write_bytes(b"program")
    return {n: PipelineConfig(ROOT / f"p4src/p4info/luwu_{s.lanes}.p4info.txtpb", config)
            for n, s in topology.switches.items()}  # fmt: skip


class RunningController:
    """A context manager; `stop` and `start` make a restart."""

    def __init__(self, topology: Topology, addresses: Mapping[str, str], folder: Path, timing: Timing = QUICK) -> None:
        self.topology = topology
        self.certificates = folder / "certificates"
        certificates.make(self.certificates, topology.hosts)
        self._held = HeldAddress()  # the same after a restart, as an operator's configuration has it
        self.settings = Settings(
            topology, addresses, folder, self.certificates, (self._held.address, "127.0.0.1:0"), timing
        )
        self.address = ""
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], None] = lambda: None
        self._failure: BaseException | None = None

    def start(self) -> None:
        started = threading.Event()

        async def main() -> None:
            stop, loop = asyncio.Event(), asyncio.get_running_loop()
            self._stop = lambda: loop.call_soon_threadsafe(stop.set)

            def note(addresses: list[str]) -> None:
                self.address = addresses[0]
                started.set()

            await serve(self.settings, note, stop)

        def body() -> None:
            try:
                asyncio.run(main())
            except BaseException as error:
                self._failure = error
            finally:
                started.set()

        self._failure = None
        self._thread = threading.Thread(target=body, daemon=True)
        self._thread.start()
        assert started.wait(120)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        if self._thread is not None:
            self._stop()
            self._thread.join(120)
            assert not self._thread.is_alive()
            self._thread = None

    @property
    def runs(self) -> bool:
        """Whether it has not ended by itself."""
        return self._thread is not None and self._thread.is_alive()

    def until_ended(self) -> None:
        """Wait until it ends by itself."""
        assert self._thread is not None
        self._thread.join(120)
        assert not self._thread.is_alive()
        self._thread = None
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> RunningController:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._held.close()

    def operator(self) -> OperatorClient:
        """A connection as an operator."""
        return OperatorClient(self.address, self.certificates, timeout=300.0)

    def join(self, job: str, host: str, token: str, **options: Any) -> Membership:
        """A member on a host."""
        options.setdefault("timeout", 60.0)
        credentials = Credentials.of(self.certificates, options.pop("proves", host))
        return Membership.join(
            controller=self.address, job=job, host=host, token=token, credentials=credentials, **options
        )


def until(ready: Callable[[], Any], what: str, seconds: float = 120.0) -> Any:
    """Wait for something that another thread brings about."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if found := ready():
            return found
        pause.wait(0.01)
    raise AssertionError(f"never: {what}")


def vanish(member: Membership) -> None:
    """End a member without a goodbye, as when its process dies.

    The controller has its connection by then; of a member that ends before, only its silence tells.
    """
    until(lambda: member._call, f"{member.description.host} opens its connection").initial_metadata()
    member._end()


def use_fake_programs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No compiler."""
    monkeypatch.setattr(core, "programs_of", lambda topology: programs(topology, folder))


def use_loopback_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoints of members bind where this machine has an address, and reach nobody."""
    real = Description.open

    def opened(self: Description, **options: Any) -> Endpoint:
        return real(replace(self, local=("127.0.0.1", 0), switch=("127.0.0.1", 9)), **options)

    monkeypatch.setattr(Description, "open", opened)


class Place:
    """Three switches in memory and their controller."""

    def __init__(self, folder: Path, timing: Timing = QUICK) -> None:
        self.topology: Topology = racks(
            [["w0", "w1"], ["w2", "w3"]], ["opt"], program=Path("luwu.p4"), name="lab", slots=256
        )
        self.exits = ExitStack()
        self.fakes = {n: RunningFake(FakeSwitch(device_id=self.topology.switch(n).device_id)) for n in SWITCHES}
        for fake in self.fakes.values():
            self.exits.enter_context(fake)
        addresses = {n: f.address for n, f in self.fakes.items()}
        self.controller = RunningController(self.topology, addresses, folder, timing)
        self.exits.enter_context(self.controller)
        self.until_up()

    def until_up(self) -> None:
        """Every switch is up; one that has no program yet was restarted, which the controller has not noticed."""
        with self.controller.operator() as operator:
            try:
                until(
                    lambda: (
                        all(fake.switch.config for fake in self.fakes.values())
                        and all(s.state == "up" for s in operator.switches())
                    ),
                    "every switch is up",
                )
            except AssertionError as error:
                states = "; ".join(f"{s.name}: {s.state}, {s.detail}" for s in operator.switches())
                raise AssertionError(f"{error} ({states})") from None

    def contents(self, switch: str) -> tuple[list[str], dict[int, list[int]]]:
        """What a switch holds: every entry in words, and its groups; nothing before it has a program."""
        fake, device = self.fakes[switch], self.topology.switch(switch).device_id
        if fake.switch.p4info is None:
            return [], {}
        with SwitchClient.connect(fake.address, device, read_only=True, timeout=60.0) as client:
            return sorted(f"{e.key()} {e.action} {e.params}" for e in client.read()), client.groups()

    def all_contents(self) -> dict[str, Any]:
        return {name: self.contents(name) for name in SWITCHES}

    def restart_switch(self, name: str, while_down: Callable[[], None] = lambda: None) -> None:
        """It comes back at the same address and knows nothing."""
        old = self.fakes[name]
        old.stop()
        while_down()
        self.fakes[name] = RunningFake(FakeSwitch(device_id=old.switch.device_id), old.address)
        self.exits.enter_context(self.fakes[name])


def request(name: str = "train", slots: int = 16, workers: tuple[str, ...] = ("w0", "w1", "w2")) -> JobRequest:
    return JobRequest(name, "luwu", workers, "opt", slots)
