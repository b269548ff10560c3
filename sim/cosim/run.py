"""What `catchment cosim` runs: rounds of random gradients and parameters on a star, and what they cost."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import numpy as np

from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.machine import Machine
from catchment.sim.cosim.rounds import RoundTimes, as_type, gradients, parameters
from catchment.sim.world import Faults
from catchment.wire.generated.constants import DataType, PacketType


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: `rounds` of `elements` gradients up and the sums' bytes as parameters down.

    `pcap`: a file for all frames. `waves`: a folder for the NICs' waveforms.
    """

    workers: int = 2
    elements: int = 65536
    rounds: int = 2
    dtype: DataType = DataType.FP32
    slots: int = 256
    faults: Faults = field(default_factory=Faults)
    seed: int = 1
    pcap: Path | None = None
    waves: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What it took.

    Attributes:
        clocks: of the machine, from start to end.
        clocks_per_second: of this process's time.
        up, down: each round's times.
        gradient_gbps: best round, elements' bits on the wire of one worker by time from push to the root's memory.
        frames: on all lines, by packet type.
        lost: frames on all lines.
        resent: data frames that were retransmissions.
    """

    clocks: int
    clocks_per_second: float
    up: tuple[RoundTimes, ...]
    down: tuple[RoundTimes, ...]
    gradient_gbps: float
    frames: dict[str, int]
    lost: int
    resent: int


def run(order: Order) -> Outcome:
    """Every byte is compared with numpy's.

    Raises:
        CosimError: something differs, or does not arrive.
    """
    if order.elements < 1 or order.rounds < 1:
        raise CosimError(f"{order.rounds} rounds of {order.elements} elements: give at least one of each")
    numbers = np.random.default_rng(order.seed)
    with (
        Machine.star(order.workers, seed=order.seed, waves=order.waves) as machine,
        machine.capture(order.pcap) if order.pcap else nullcontext(),
    ):
        job = machine.luwu([f"w{i}" for i in range(order.workers)], root="opt", slots=order.slots)
        for cable in machine.cables.values():
            cable.faults(order.faults)
        exponent = 0 if order.dtype == DataType.INT32 else 3
        began, spent = machine.clocks, process_time()
        up, down = [], []
        for _ in range(order.rounds):
            real = [numbers.normal(size=order.elements).astype(np.float32) for _ in job.workers]
            if order.dtype == DataType.INT32:
                parts = [np.rint(each * 1e6).astype(np.int32) for each in real]
            else:
                parts = [as_type(each, order.dtype) for each in real]
            total, times = gradients(machine, job, parts, order.dtype, exponent=exponent)
            up.append(times)
            down.append(parameters(machine, job, total.tobytes()))
        clocks, spent = machine.clocks - began, process_time() - spent
        counts = [line.counts() for cable in machine.cables.values() for line in (cable.up, cable.down)]
    frames = {kind.name: total for kind in PacketType if (total := sum(c["frames"].get(int(kind), 0) for c in counts))}
    bits = order.elements * 32
    return Outcome(
        clocks, clocks / max(spent, 1e-9), tuple(up), tuple(down), max(bits / t.latency for t in up), frames,
        sum(c["lost"] for c in counts), sum(sum(c["resent"].values()) for c in counts),
    )  # fmt: skip
