"""Rings in flow mode: chunks that hosts pass on, and what waits in front of lines that are slower than those before.

Hosts run ahead of a slow line by their windows, so that frames wait in front of it. Heartbeats of the other way wait
behind them, and the window that they were to open stays shut for so long: a ring of hosts at several rates takes up to
1.4 times what its slowest line does. That is simulated in blocks of frames (native/ring_of_blocks.hpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catchment.sim.performance._performance import ring_of_blocks
from catchment.sim.performance.baselines import PAYLOAD, WINDOW
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow_lines import FlowModel, on_wire
from catchment.sim.performance.max_min import Flow, fair_rates
from catchment.sim.performance.models import PICOS_PER_SECOND, Timers, frame_bytes
from catchment.sim.performance.planning import path_tree

_LONGEST = 16 * WINDOW
"""Frames of a chunk that are simulated: what is longer goes on at the same rate."""
_MOST = 1 << 22
"""Frames that are simulated in all: of larger rings the first steps, the later ones being like them."""


@dataclass(frozen=True, slots=True)
class _Hop:
    """The way from a host to the next.

    Attributes:
        forth: lines of data, in order. `back`: of the heartbeats that answer.
        switches: on the way.
    """

    forth: tuple[int, ...]
    back: tuple[int, ...]
    switches: int


def ring_seconds(model: FlowModel, workers: Sequence[str], size: int) -> float:
    """The time of an all-reduce of so many bytes on a ring through these hosts.

    Raises:
        PerformanceError: fewer than two hosts, or hosts that are too far apart.
    """
    hops = _hops(model, workers)
    frames = -(-size // len(workers) // PAYLOAD)
    steps = 2 * (len(workers) - 1)
    takes = _pipelined(model, hops, frames, steps)
    slowest, way = max(model.byte[line] for hop in hops for line in hop.forth), max(hop.switches for hop in hops)
    waits = model.waits(WINDOW, PAYLOAD, way, slowest, steps * frames * PAYLOAD)
    if not waits and all(model.byte[line] <= model.byte[hop.forth[0]] for hop in hops for line in hop.forth):
        return takes
    few = min(frames, _LONGEST)
    first = max(2, min(steps, _MOST // (few * len(hops))))
    return takes * _in_blocks(model, hops, few, first) / _pipelined(model, hops, few, first)


def ring_lines(model: FlowModel, workers: Sequence[str]) -> tuple[int, ...]:
    """The lines on which each host's chunks go to the next host; errors as of `ring_seconds`."""
    return tuple(line for hop in _hops(model, workers) for line in hop.forth)


def _hops(model: FlowModel, workers: Sequence[str]) -> list[_Hop]:
    if len(workers) < 2:
        raise PerformanceError("a ring needs two hosts")
    hops = []
    for at, host in enumerate(workers):
        after = workers[(at + 1) % len(workers)]
        tree = path_tree(model.cluster.topology, host, after, at)
        down = [model.between[b.parent.switch, b.parent.port] for b in tree if b.parent]
        up = [model.between[b.switch, b.up_port] for b in tree if b.parent and b.up_port is not None]
        forth, back = (model.up[host], *down, model.down[after]), (model.up[after], *reversed(up), model.down[host])
        hops.append(_Hop(forth, back, len(tree)))
    return hops


def _pipelined(model: FlowModel, hops: Sequence[_Hop], frames: int, steps: int) -> float:
    """Each host passes a chunk on when it has it and has passed on the one before; hops differ, windows are wide."""
    chunk = on_wire(frames * PAYLOAD, PAYLOAD)
    takes = chunk / fair_rates([Flow(hop.forth, chunk) for hop in hops], model.capacity)
    latency = np.array([model.latency(PAYLOAD, [hop.forth]) for hop in hops])
    latency -= takes * frame_bytes(PAYLOAD) / chunk
    free = np.zeros(len(hops))
    has = np.zeros(len(hops))
    for _ in range(steps):
        free = np.maximum(has, free) + takes
        has = np.roll(free + latency, 1)
    return float(has.max())


def _in_blocks(model: FlowModel, hops: Sequence[_Hop], frames: int, steps: int) -> float:
    """The same with windows, and with heartbeats that wait."""
    nic, cluster, data = model.nic, model.cluster, frame_bytes(PAYLOAD)
    bytes_ = [round(byte) for byte in model.byte]

    def heartbeat(hop: _Hop) -> int:
        slowest = max(bytes_[line] for line in hop.forth)
        return Timers.of(frame=data * slowest, way=0, slots=WINDOW).heartbeat

    picos = ring_of_blocks(
        bytes_, [(hop.forth, hop.back, heartbeat(hop)) for hop in hops], frames, steps,
        latency=cluster.links.latency, pipeline=cluster.switch.pipeline, push=nic.push, pull=nic.pull,
        respond=nic.respond, data_bytes=data, head_bytes=frame_bytes(0), fifo_bytes=nic.fifo_bytes, window=WINDOW,
    )  # fmt: skip
    return picos / PICOS_PER_SECOND
