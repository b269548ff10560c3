"""Clocked devices around one switch: what a hardware simulation and a switch program need to meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from catchment.sim.world._world import Line, World
from catchment.sim.world.faults import Faults

Inject = Callable[[int, bytes], list[tuple[int, bytes]]]
"""A switch: of a frame on a port, the frames that leave and their ports."""
CLOCK_PICOS = 4000
"""A clock of the hardware, at 250 MHz."""
NO_FAULTS = Faults()


class ClockedDevice(Protocol):
    """What is plugged in: it runs for some clocks, and says what it has sent."""

    @property
    def now(self) -> int:
        """Clocks that it has run."""

    def run(self, clocks: int) -> None:
        """Let clocks pass."""

    def frames(self) -> Iterable[tuple[int, bytes]]:
        """What it has sent since the last call, each with its clock."""

    def receive(self, frame: bytes) -> None:
        """Take a frame."""


@dataclass(frozen=True, slots=True)
class Hops:
    """Cables between the devices and the switch, in clocks.

    Attributes:
        faults: of each direction of each cable; times in picoseconds.
        hop: clocks from a device to the switch, and back.
    """

    faults: Faults = NO_FAULTS
    hop: int = 50

    @classmethod
    def with_stragglers(cls, *, hop: int, tail: float, loss: float = 0.0, duplicate: float = 0.0) -> Hops:
        """One frame in five takes up to `tail` hops more, so that others pass it."""
        late = round(hop * tail * CLOCK_PICOS)
        return cls(Faults(loss=loss, duplicate=duplicate, reorder=0.2 if late else 0.0, delay=late), hop)


class Star:
    """Devices by the switch port that they are plugged into, run in steps of a few clocks.

    Args:
        devices: may grow until the first step.
        inject: the switch; it takes no time.
        seed: of the faults.
        step: clocks of a step: frames reach devices at its end, so a hop takes up to as much longer.

    Attributes:
        now: clocks that have passed.
    """

    def __init__(
        self, devices: Mapping[int, ClockedDevice], inject: Inject, *, seed: int, hops: Hops | None = None,
        step: int = 25,
    ) -> None:  # fmt: skip
        self.devices = devices
        self.now = 0
        self._inject, self._hops, self._step = inject, hops or Hops(), step
        self._world = World(seed)
        self._up: dict[int, Line] = {}
        self._down: dict[int, Line] = {}

    @property
    def lost(self) -> int:
        """Frames that faults have taken so far."""
        return sum(line.counts["lost"] for line in (*self._up.values(), *self._down.values()))

    def advance(self) -> None:
        """One step of all devices, then what the switch and the lines do meanwhile."""
        if not self._up:
            self._plug_in()
        for port, device in self.devices.items():
            begin = device.now
            device.run(self._step)
            for clock, frame in device.frames():
                self._up[port].send(frame, ready=(self.now + max(0, clock - begin)) * CLOCK_PICOS)
        self.now += self._step
        while self._world.step(self.now * CLOCK_PICOS + 1):
            pass

    def _plug_in(self) -> None:
        for port, device in self.devices.items():
            self._up[port] = self._line(partial(self._into_switch, port))
            self._down[port] = self._line(device.receive)

    def _line(self, deliver: Callable[[bytes], None]) -> Line:
        return Line(self._world, deliver, latency=self._hops.hop * CLOCK_PICOS, faults=self._hops.faults)

    def _into_switch(self, port: int, frame: bytes) -> None:
        for out, answer in self._inject(port, frame):
            self._down[out].send(answer)
