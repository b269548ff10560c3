"""`make bench-rails`: one all-reduce over several rails, row by row, beside what is aimed for and the paper's figures.

Each rail is a switch of its own whose shared-memory ports keep to a rate, or a ring of TCP connections that do; ranks
are threads of this process. The rates are the issue's divided by `--scale`, so low that two processors do not bound.
Rows: `equal`, `uneven`, `three`, `ring` (gains over the best rail), `small` (short operations beside the best rail),
`mptcp` (beside a ring over the kernel's MPTCP, on links of the same rates), `alone` (a set of one rail beside a
communicator), `late` (shares beside a rank that sleeps), `failover` (the link of a rank to a rail is cut while they
run; the time from the rail's last sum until all ranks carry on over another one) and `trace` (rates and shares while a
rail is lost and found again, the paper's Figure 8). All of them unless named. `--quick` takes less of everything.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import quantiles
from typing import Annotated, Self

import numpy as np
import typer
from matplotlib.figure import Figure as Graph

from bench.mptcp_ring import beside_mptcp
from bench.plots import save
from bench.rail_gains import HOSTS, MBIT, MIB, alone, everywhere, gains, late, settings, small
from bench.report import RESULTS, Figure, publish
from catchment.host.collectives import RailHealth, RailPolicy, RailSet
from catchment.program import run_program
from catchment.sim.lab.rail_lab import RailLab
from catchment.softswitch.admin import SwitchAdmin

PATIENCE = 60.0
STEPS = 100  # of the trace
MEDIAN_GOAL, TAIL_GOAL = 0.1, 0.2
OTHERS = ("small", "mptcp", "alone", "late", "failover", "trace")


PAPER = "The paper, 2 equal rails: Nezha 1.84 (4 nodes) and 1.87 (8), MPTCP 1.58 and 1.50; failover below 200 ms."


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for what the ranks find out together."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > ends:
            raise SystemExit(what)
        time.sleep(0.002)


def failovers(incidents: int, seed: int) -> tuple[list[Figure], str]:
    """How long operations stand still when the link of a rank to a rail is cut."""
    chance, took = random.Random(seed), []
    rates = {"a": 200 * MBIT, "b": 200 * MBIT}
    with RailLab(HOSTS, rates) as lab:
        for _ in range(incidents):
            rail, host = chance.randrange(2), chance.choice(HOSTS)
            # Ranks of its own each: a rail that fails soon after its return has to last longer before the next.
            with lab.ranks(policy=RailPolicy.FIXED, timeout=PATIENCE) as ranks, Load(ranks):
                before = [rank.rails()[rail].incidents for rank in ranks]
                time.sleep(chance.uniform(0.0, 0.05))
                lab.cut("ab"[rail], host)
                until(partial(_noticed, ranks, rail, before), "a cut link goes unnoticed")
                took.append(max(rank.rails()[rail].last_incident for rank in ranks))
                lab.join("ab"[rail], host)
                until(partial(_returned, ranks, rail), "a rail does not return")
    percentiles = quantiles(took, n=100, method="inclusive")
    return [
        Figure("failover, median", 1e3 * percentiles[49], "ms", "aim", 1e3 * MEDIAN_GOAL, 1.0),
        Figure("failover, 99th percentile", 1e3 * percentiles[98], "ms", "aim", 1e3 * TAIL_GOAL, 1.0),
    ], f"{incidents} incidents: {1e3 * min(took):.0f} to {1e3 * max(took):.0f} ms"


def _noticed(ranks: Sequence[RailSet], rail: int, before: Sequence[int]) -> bool:
    """Whether all ranks know of one more incident of a rail than `before`."""
    return all(rank.rails()[rail].incidents > count for rank, count in zip(ranks, before, strict=True))


def _returned(ranks: Sequence[RailSet], rail: int) -> bool:
    """Whether all ranks use a rail."""
    return all(rank.rails()[rail].health is RailHealth.UP for rank in ranks)


class Load:
    """All ranks all-reduce one array after the other, in threads, for as long as the context lasts."""

    def __init__(self, ranks: Sequence[RailSet]) -> None:
        self._ranks = ranks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failed: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self.failed is not None and kind is None:
            raise self.failed

    def _run(self) -> None:
        arrays = [np.ones(MIB // 4, np.float32) for _ in self._ranks]
        try:
            while not self._stop.is_set():
                everywhere(self._ranks, lambda rank: rank.all_reduce(arrays[rank.rank], op="mean").wait())
        except Exception as error:
            self.failed = error


def trace(seconds: float) -> str:
    """Draw rates and shares of each rail while rail b is lost in the second and the fourth fifth of the time."""
    rates = {"a": 200 * MBIT, "b": 100 * MBIT}
    step = seconds / STEPS
    carried: dict[str, list[int]] = {rail: [] for rail in rates}
    shared: dict[str, list[int]] = {rail: [] for rail in rates}
    with RailLab(HOSTS, rates) as lab, lab.ranks(timeout=PATIENCE) as ranks, Load(ranks):
        for at in range(STEPS + 1):
            for rail, state in zip(rates, ranks[0].rails(), strict=True):
                with SwitchAdmin(lab.admin(rail)) as admin:
                    carried[rail].append(admin.port(1)["tx_bytes"])
                shared[rail].append(state.bytes)
            if at in (STEPS // 5, 3 * STEPS // 5):
                lab.cut("b", HOSTS[1])
            elif at in (2 * STEPS // 5, 4 * STEPS // 5):
                lab.join("b", HOSTS[1])
            time.sleep(step)
    figure = Graph(figsize=(7, 5))
    above, below = figure.subplots(2, sharex=True)
    moments = [step * at for at in range(STEPS)]
    every = [sum(grown) for grown in zip(*map(growth, shared.values()), strict=True)]
    for rail, rate in rates.items():
        speeds = [8 * grown / step / MBIT for grown in growth(carried[rail])]
        above.plot(moments, speeds, label=f"rail {rail}, {rate // MBIT} Mb/s")
        parts = zip(growth(shared[rail]), every, strict=True)
        below.plot(moments, [part / whole if whole else float("nan") for part, whole in parts])
    for axes in (above, below):
        for begins in (0.2, 0.6):
            axes.axvspan(begins * seconds, (begins + 0.2) * seconds, alpha=0.15)
    above.set(ylabel="Mb/s to rank 0")
    above.legend()
    below.set(xlabel="seconds (shaded: a link of rail b is cut)", ylabel="share of what is split", ylim=(0, 1.05))
    save(figure, RESULTS / "rails.svg")
    return f"Rates and shares over time with a rail lost and found: {RESULTS / 'rails.svg'}"


def growth(counts: Sequence[int]) -> list[int]:
    """What a counter grew by from each look to the next."""
    return [after - before for before, after in itertools.pairwise(counts)]


def main(
    *,
    row: Annotated[list[str] | None, typer.Option(help="A row, several where repeated; all unless given.")] = None,
    scale: Annotated[int, typer.Option(min=1, help="What the rates of the table are divided by.")] = 4,
    quick: Annotated[bool, typer.Option(help="Fewer turns and incidents: in five minutes.")] = False,
    incidents: Annotated[int, typer.Option(help="Links that are cut.")] = 200,
    seed: Annotated[int, typer.Option(help="Of which link is cut, and when.")] = 1,
) -> None:
    """Measure and report."""
    table = settings(scale)
    turns = 8 if quick else 30
    wanted = row or [*table, *OTHERS]
    figures: list[Figure] = []
    notes = [PAPER]
    for name in wanted:
        if name in table:
            found, said = gains(table[name], turns)
            figures += found
            notes += said
        elif name == "small":
            figures += small(table["uneven"], turns)
        elif name == "mptcp":
            found, said = beside_mptcp(table["equal"], turns)
            figures += found
            notes += said
        elif name == "alone":
            figures += alone(turns)
        elif name == "late":
            figures.append(late(table["uneven"], seed))
        elif name == "failover":
            found, note = failovers(20 if quick else incidents, seed)
            figures += found
            notes.append(note)
        elif name == "trace":
            notes.append(trace(20.0 if quick else 60.0))
        else:
            raise typer.BadParameter(f"no row {name!r}; there are: {', '.join([*table, *OTHERS])}")
    publish("bench-rails", figures, notes)


if __name__ == "__main__":
    run_program(main)
