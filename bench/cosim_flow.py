"""Accounts for each percent of a worker's link while all workers push without end; bench/cosim.py prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.rtl.generated import nic_regs as regs
from catchment.sim.cosim.machine import Machine
from catchment.sim.cosim.models import CLOCK_NS, PICOS_PER_NANO
from catchment.sim.performance.models import FRAME_OVERHEAD
from catchment.sim.world import GAP_BYTES
from catchment.wire.generated.constants import LANE_BYTES, DataType, PacketType

_WARM_UP = 6000  # clocks until the windows are full and heartbeats come
_STRETCH = 12_000
_STALLS = {
    "credit": regs.Statistic.TX_CREDIT_CLOCKS,
    "window": regs.Statistic.TX_WINDOW_CLOCKS,
}


@dataclass(frozen=True, slots=True)
class Flow:
    """Shares of a worker's link up, which add up to 1, and what the root got.

    Attributes:
        vector_bytes: of a frame's lanes.
        payload: lanes of frames sent for the first time.
        headers: Ethernet, IPv4, UDP and ours of those frames.
        ethernet: preamble, FCS and gap of those frames.
        heartbeats: the worker's own, for the parameters' stream.
        resent: data frames sent again.
        idle: the rest; `credit` and `window` say how much of the time a vector waited for them.
        aggregate_gbps: lanes of the sum that reached the root.
        root_heartbeat_mbps: heartbeats of the root, on its link up.
        clocks_per_second: of this process's time.
    """

    workers: int
    vector_bytes: int
    payload: float
    headers: float
    ethernet: float
    heartbeats: float
    resent: float
    idle: float
    credit: float
    window: float
    aggregate_gbps: float
    root_heartbeat_mbps: float
    clocks_per_second: float

    @property
    def possible(self) -> float:
        """What the frame overhead leaves of a link."""
        return self.vector_bytes / (self.vector_bytes + FRAME_OVERHEAD + GAP_BYTES)


def measure_flow(workers: int, vector_bytes: int, clock: Any) -> Flow:
    """All workers push one long message; looks at the middle of it. `clock` gives this process's seconds."""
    lanes = vector_bytes // LANE_BYTES
    frame_ns = (vector_bytes + FRAME_OVERHEAD + GAP_BYTES) * 0.08
    vectors = int((_WARM_UP + _STRETCH) * CLOCK_NS / frame_ns) + 2048
    with Machine.star(workers, lanes=lanes, slots=1024, parameters={"VECTOR_BYTES": vector_bytes}) as machine:
        job = machine.luwu([f"w{i}" for i in range(workers)], root="opt", slots=1024)
        numbers = np.random.default_rng(1)
        with machine.together():
            machine["opt"].pull(vectors * vector_bytes, DataType.FP32)
            for worker in job.workers:
                machine[worker].push(numbers.normal(size=vectors * lanes).astype(np.float32), DataType.FP32, 3)
        machine.run(_WARM_UP)
        stalls = _stalls(machine)  # reading them takes clocks
        before, began, spent = _counts(machine), machine.now_ns, clock()
        machine.run(_STRETCH)
        spent, clocks = clock() - spent, _STRETCH
        passed = machine.now_ns - began
        after = _counts(machine)
        stalled = {name: count - stalls[name] for name, count in _stalls(machine).items()}
    up = {key: after["up"][key] - before["up"][key] for key in before["up"]}
    capacity = passed * PICOS_PER_NANO / machine.link.byte_picos  # bytes that the link carries in this time
    frames = up["data"] - up["resent"]
    shares = {
        "payload": frames * vector_bytes / capacity,
        "headers": frames * FRAME_OVERHEAD / capacity,
        "ethernet": frames * GAP_BYTES / capacity,
        "heartbeats": up["heartbeats"] * (FRAME_OVERHEAD + GAP_BYTES) / capacity,
        "resent": up["resent"] * (vector_bytes + FRAME_OVERHEAD + GAP_BYTES) / capacity,
    }
    sums = after["down"]["sums"] - before["down"]["sums"]
    beats = after["root"]["heartbeats"] - before["root"]["heartbeats"]
    return Flow(
        workers, vector_bytes, **shares, idle=1 - sum(shares.values()),
        credit=stalled["credit"] / clocks, window=stalled["window"] / clocks,
        aggregate_gbps=sums * vector_bytes * 8 / passed,
        root_heartbeat_mbps=beats * (FRAME_OVERHEAD + GAP_BYTES) * 8 / passed * 1000,
        clocks_per_second=clocks / spent,
    )  # fmt: skip


def _counts(machine: Machine) -> dict[str, dict[str, int]]:
    up, root, down = machine.cables["w0"].up.counts(), machine.cables["opt"].up.counts(), machine.cables["opt"].down
    pa, beat = int(PacketType.PA), int(PacketType.HB)
    return {
        "up": {
            "data": up["frames"].get(pa, 0),
            "resent": up["resent"].get(pa, 0),
            "heartbeats": up["frames"].get(beat, 0),
        },
        "root": {"heartbeats": root["frames"].get(beat, 0)},
        "down": {"sums": down.counts()["frames"].get(int(PacketType.FA), 0)},
    }


def _stalls(machine: Machine) -> dict[str, int]:
    driver = machine.nic("w0").driver
    return {name: driver.statistic(which) for name, which in _STALLS.items()}
