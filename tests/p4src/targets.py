"""What a test needs of a switch, whatever runs the program."""

from __future__ import annotations

from typing import Protocol

from catchment.sim.golden.switch_core import SwitchCore
from catchment.sim.golden.switch_tables import Tables
from catchment.wire.generated.constants import DropReason

Output = list[tuple[int, bytes]]


class Target(Protocol):
    """A switch that runs one of the programs."""

    def load(self, tables: Tables) -> None:
        """Install rows and groups into a switch that has none."""

    def run(self, traffic: list[tuple[int, bytes]], expected: list[Output]) -> list[Output]:
        """Inject frame by frame; what left because of each.  `expected` may be used to know when to stop waiting."""

    def drops(self) -> dict[int, int]:
        """DropReason -> packets, without zeros."""

    def refused(self) -> dict[tuple[int, int], int]:
        """(ingress port, DropReason) -> frames that its host may not send, without zeros."""

    def job_packets(self) -> dict[tuple[int, int], int]:
        """(gen, port) -> packets, without zeros."""

    def close(self) -> None:
        """End it."""


def by_port(output: Output) -> dict[int, list[bytes]]:
    """Order matters per receiver only."""
    ports: dict[int, list[bytes]] = {}
    for port, frame in output:
        ports.setdefault(port, []).append(frame)
    return ports


def compare(target: Target, model: SwitchCore, traffic: list[tuple[int, bytes]]) -> None:
    """Run both; AssertionError naming the first frame on which they differ, or the counter."""
    target.load(model.tables)
    expected = [model.inject(port, frame) for port, frame in traffic]
    actual = target.run(traffic, expected)
    for index, (want, got) in enumerate(zip(expected, actual, strict=True)):
        port, frame = traffic[index]
        assert by_port(got) == by_port(want), (
            f"frame {index} on port {port}: {frame.hex()}\n"
            f"model:  {[(p, f.hex()) for p, f in want]}\ntarget: {[(p, f.hex()) for p, f in got]}"
        )
    model_drops = {int(reason): count for reason, count in model.drops.items() if count}
    names = {int(r): r.name for r in DropReason}
    assert target.drops() == model_drops, f"reasons: {names}"
    assert target.refused() == dict(model.refused)
    assert target.job_packets() == {key: count for key, count in model.job_packets.items() if count}
