"""The two ways of COARSE's proxies to add, in one run on one clock: a ring of sync nodes, and NICs around a switch.

    python -m catchment.sim.cosim.ring_and_switch --devices 4 --kib 256

The same integers are summed by both at the same time, and every bit is compared. Times are from the doorbell of the
first device to the interrupt of the last one, and to the last completion record in a host's memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from catchment.controlplane.topology import star
from catchment.program import run_program
from catchment.rtl.driver.sync import ENTRY
from catchment.rtl.generated import sync_regs
from catchment.rtl.harness.sync_ring import LANES
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.machine import LUWU, Kind, Machine, Transfer
from catchment.sim.cosim.models import CLOCK_NS, PCIE_GBPS, PICOS_PER_NANO, LinkModel, RingModel
from catchment.wire.generated.constants import LANE_BYTES, DataType, PacketType


@dataclass(frozen=True, slots=True)
class Comparison:
    """One sum by each way. Clocks are of 4 ns, entries of 64 bytes.

    Attributes:
        ring: clocks, one way around the ring.
        ring_entries: what each device sent.
        ring_formula: clocks of 2(p-1)/p times the tensor's entries, at the rate of link or node, whichever is less.
        switch: clocks.
        switch_entries: what each NIC sent as partial sums.
        switch_formula: clocks of the tensor's bytes alone at the rate of the line.
    """

    devices: int
    entries: int
    ring: float
    ring_entries: float
    ring_formula: float
    switch: float
    switch_entries: float
    switch_formula: float

    @property
    def by_bytes(self) -> float:
        """How much more each device sends on the ring."""
        return self.ring_entries / self.switch_entries

    @property
    def by_time(self) -> float:
        """The ring's time by the switch's."""
        return self.ring / self.switch


def compare(devices: int, entries: int, ring: RingModel | None = None, seed: int = 1, lanes: int = 64) -> Comparison:
    """Sum random int32 by both ways in one machine; `lanes`: of the NICs' frames.

    Raises:
        CosimError: a sum is not numpy's, or the two ways differ.
    """
    model, link = replace(ring or RingModel(), entries=entries), LinkModel()
    names, memories = [f"w{i}" for i in range(devices)], [f"m{i}" for i in range(devices)]
    kinds = dict.fromkeys(names, Kind.WORKER) | dict.fromkeys(memories, Kind.MEMORY_DEVICE)
    own = np.random.default_rng(seed).integers(-(2**31), 2**31, (devices, entries, LANES), np.int32)
    topology = star(names, program=LUWU, lanes=lanes, slots=1024)
    parameters = {} if lanes == 64 else {"VECTOR_BYTES": LANE_BYTES * lanes}
    with Machine(topology, kinds, seed=seed, link=link, ring=model, parameters=parameters) as machine:
        machine.allreduce(names, slots=512)
        nodes = [machine.memory(name) for name in memories]
        for node, each in zip(nodes, own, strict=True):
            node.memory[:] = each
        with machine.together():  # doorbells ring at the end; until then nothing moves
            pulls = [machine[name].pull(own[0].nbytes, DataType.INT32) for name in names]
            pushes = [machine[name].push(each, DataType.INT32) for name, each in zip(names, own, strict=True)]
        began = machine.now_ns
        sums = [node.sync(0, 0, entries) for node in nodes]
        machine.finish([*pulls, *pushes, *sums])
        by_ring, by_switch = np.stack([n.memory for n in nodes]), np.stack([_lanes(pull) for pull in pulls])
        ring_sent = sum(node.driver.counter(sync_regs.SENT_NEXT) for node in nodes) / devices
        frames = sum(machine.cables[name].up.counts()["frames"][int(PacketType.PA)] for name in names) / devices
    expected = own.sum(0, dtype=np.int32)
    for way, found in (("ring", by_ring), ("switch", by_switch)):
        if (wrong := np.argwhere((found.reshape(own.shape) != expected).any(2))).size:
            raise CosimError(f"{way}: device {wrong[0][0]}, entry {wrong[0][1]} is not numpy's sum")
    wire = max(CLOCK_NS, model.flit_ns) / CLOCK_NS
    return Comparison(
        devices, entries,
        (max(each.finished_ns for each in sums) - began) / CLOCK_NS, ring_sent,
        2 * (devices - 1) / devices * entries * wire,
        (max(each.finished_ns for each in pulls) - began) / CLOCK_NS, frames * lanes / LANES,
        entries * ENTRY * link.byte_picos / PICOS_PER_NANO / CLOCK_NS,
    )  # fmt: skip


def _lanes(pull: Transfer) -> NDArray[np.int32]:
    return np.frombuffer(pull.check(), np.int32)


def rows(found: Comparison) -> list[tuple[str, str, str, str]]:
    """The comparison for people: way, entries that a device sends, clocks, clocks of the formula."""
    return [
        ("ring", f"{found.ring_entries:.0f}", f"{found.ring:.0f}", f"{found.ring_formula:.0f}"),
        ("switch", f"{found.switch_entries:.0f}", f"{found.switch:.0f}", f"{found.switch_formula:.0f}"),
        ("ring by switch", f"{found.by_bytes:.2f}", f"{found.by_time:.2f}", ""),
    ]


def main(
    devices: Annotated[list[int], typer.Option(help="p; repeat it for more.")] = [4],  # noqa: B006
    kib: Annotated[int, typer.Option(help="KiB of the tensor.", min=1)] = 64,
    gbps: Annotated[float, typer.Option(help="Rate of the ring's links; by default 16 lanes of PCIe 4.")] = PCIE_GBPS,
    lanes: Annotated[int, typer.Option(help="Of the NICs' frames: 64, or 256 for 1 KiB.")] = 64,
    seed: Annotated[int, typer.Option(help="Of data and machine.")] = 1,
) -> None:
    """Print both ways to add, on one clock."""
    for count in devices:
        found = compare(count, kib * 1024 // ENTRY, RingModel(gbps=gbps), seed, lanes)
        print(f"{count} devices, {kib} KiB, ring's links of {gbps:g} Gb/s; all sums are equal")
        for row in (("", "entries sent", "clocks", "formula"), *rows(found)):
            print("  {:16}{:>14}{:>10}{:>10}".format(*row))


if __name__ == "__main__":
    run_program(main)
