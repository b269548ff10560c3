"""`make bench-cosim`: what the whole machine does in simulated time, and how fast it is simulated.

Goodput, latency, heartbeats and recovery are times of the simulation: they are the same on every machine. Only clocks
a second depend on this one.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from bench.cosim_flow import Flow, measure_flow
from bench.cosim_plots import plot_flows, plot_latency, plot_speed
from bench.report import RESULTS, Figure, publish
from catchment.sim.cosim.machine import Machine
from catchment.sim.cosim.rounds import gradients, parameters
from catchment.sim.performance.models import FRAME_OVERHEAD
from catchment.sim.world import GAP_BYTES
from catchment.wire.generated.constants import DataType, PacketType

_WORKERS = (2, 4, 8, 16)
_FRAMES = (256, 1024)
_SIZES = tuple(256 << shift for shift in range(0, 13, 2))
_AIM = 0.95
_PAPER_HEARTBEAT_MBPS = 20.0
_MOST_RECOVERY_US = 100.0
_CLOCKS_PER_SECOND = 20_000
_IDLE_CLOCKS = 4000


def goodput() -> tuple[list[Figure], list[Flow], list[str]]:
    """The aggregate per worker, by frame size and workers, and where the rest goes."""
    flows = [measure_flow(workers, size, process_time) for size in _FRAMES for workers in _WORKERS]
    figures, notes = [], []
    for flow in flows:
        possible = 100 * flow.possible
        figures.append(
            Figure(
                f"sums of {flow.workers} workers, {flow.vector_bytes} B a frame",
                flow.aggregate_gbps,
                "Gb/s",
                "100 Gb/s less frame overhead",
                possible,
                _AIM,
            )
        )
        parts = ", ".join(
            f"{name} {100 * getattr(flow, name):.2f} %"
            for name in ("payload", "headers", "ethernet", "heartbeats", "resent", "idle")
        )
        notes.append(
            f"{flow.workers} workers, {flow.vector_bytes} B: a worker's link up: {parts} "
            f"(a vector waited for credit {100 * flow.credit:.2f} %, for acks {100 * flow.window:.2f} % of the time)"
        )
    for size in _FRAMES:
        here = [flow.aggregate_gbps for flow in flows if flow.vector_bytes == size]
        figures.append(Figure(f"16 workers beside 2, {size} B a frame", here[-1], "Gb/s", "2 workers", here[0], 0.999))
        beats = max(flow.root_heartbeat_mbps for flow in flows if flow.vector_bytes == size)
        figures.append(Figure(f"root's heartbeats, {size} B a frame", beats, "Mb/s", "LuWu, section 7",
                              _PAPER_HEARTBEAT_MBPS))  # fmt: skip
    return figures, flows, notes


def latency() -> tuple[list[Figure], list[tuple[int, float, float]]]:
    """Push of 256 B to 1 MiB by two workers, until the root has the last byte of the sum in memory."""
    points = []
    with Machine.star(2) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=1024)
        numbers = np.random.default_rng(1)
        for size in _SIZES:
            parts = [numbers.normal(size=size // 4).astype(np.float32) for _ in job.workers]
            _, times = gradients(machine, job, parts, DataType.FP32, exponent=3)
            link = (size // 256) * (256 + FRAME_OVERHEAD + GAP_BYTES) * 0.08 / 1000
            points.append((size, times.latency / 1000, link))
            machine.run(4000)
    figures = [Figure(f"push to memory, {size} B", us, "us", "frames on one link", link) for size, us, link in points]
    return figures, points


def recovery() -> list[Figure]:
    """What one lost frame adds to a push of 256 KiB."""
    figures = []
    with Machine.star(2) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=1024)
        numbers = np.random.default_rng(1)
        parts = [numbers.normal(size=1 << 16).astype(np.float32) for _ in job.workers]
        calm = gradients(machine, job, parts, DataType.FP32, exponent=3)[1].latency
        copy = bytes(1 << 17)
        calm_down = parameters(machine, job, copy).latency
        last = (1 << 10) - 1
        cases = (
            ("a vector of one worker", machine.cables["w0"].up, PacketType.PA, 300),
            ("a sum", machine.cables["opt"].down, PacketType.FA, 300),
            ("a worker's last vector", machine.cables["w0"].up, PacketType.PA, last),
            ("the last sum", machine.cables["opt"].down, PacketType.FA, last),
            ("a heartbeat of the root", machine.cables["opt"].up, PacketType.HB, 0),
        )
        for what, line, kind, skip in cases:
            line.lose(int(kind), skip, 1)
            slow = gradients(machine, job, parts, DataType.FP32, exponent=3)[1].latency
            figures.append(_recovery(what, slow - calm))
        for what, skip in (("parameters for one worker", 200), ("its last parameters", (1 << 9) - 1)):
            machine.cables["w0"].down.lose(int(PacketType.PARAM), skip, 1)
            figures.append(_recovery(what, parameters(machine, job, copy).latency - calm_down))
    return figures


def _recovery(what: str, nanos: float) -> Figure:
    return Figure(f"lost: {what}", nanos / 1000, "us more", "aim: at most", _MOST_RECOVERY_US, None)


def speed(flows: list[Flow]) -> tuple[list[Figure], list[tuple[int, float, float]]]:
    """Clocks a second, busy and idle."""
    points = []
    for flow in flows:
        if flow.vector_bytes != _FRAMES[0]:
            continue
        with Machine.star(flow.workers) as machine:
            machine.luwu([f"w{i}" for i in range(flow.workers)], root="opt")
            spent = process_time()
            machine.run(_IDLE_CLOCKS)
            points.append((flow.workers + 1, flow.clocks_per_second, _IDLE_CLOCKS / (process_time() - spent)))
    figures = [
        Figure(f"{nics} NICs, all pushing", busy, "clocks/s", "aim for 9 NICs", _CLOCKS_PER_SECOND,
               1.0 if nics == 9 else None)
        for nics, busy, _ in points
    ]  # fmt: skip
    return figures, points


def main() -> None:
    """Measure all, write build/bench/cosim.json and three plots beside it."""
    flow_figures, flows, notes = goodput()
    latency_figures, latencies = latency()
    speed_figures, speeds = speed(flows)
    plot_flows(flows, RESULTS / "cosim-goodput.svg")
    plot_latency(latencies, RESULTS / "cosim-latency.svg")
    plot_speed(speeds, RESULTS / "cosim-speed.svg")
    publish("cosim", [*flow_figures, *latency_figures, *recovery(), *speed_figures], notes)


if __name__ == "__main__":
    main()
