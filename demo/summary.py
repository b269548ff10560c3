"""The last lines on the terminal."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from rich.console import Console

from catchment.demo.outcome import Outcome


def print_summary(outcome: Outcome, output: Path, console: Console) -> None:
    """What happened, in a few lines, and where the report is."""
    first, last = (sum(row) / len(row) for row in (outcome.losses[0], outcome.losses[-1]))
    say = partial(console.print, soft_wrap=True, highlight=False)
    say(
        f"\n{outcome.parameters:,} parameters, {outcome.options['steps']} steps in {outcome.seconds:.0f} s: "
        f"validation loss {first:.3f} -> {last:.3f} nats per byte"
    )
    if any(not math.isfinite(loss) for row in outcome.losses for loss in row):
        say("the training diverged: losses are not finite, null in report.json; choose a smaller --rate")
    if outcome.comparison is not None:
        comparison = outcome.comparison
        same = "the same bits" if comparison.exact else "DIFFERENT BITS"
        say(
            f"beside one process: integer sums give {same} (losses of {comparison.equal_passes} of {comparison.passes} "
            f"passes, weights); float sums differ by at most {comparison.largest_gap:.5f} in loss "
            f"(allowed {comparison.tolerance})"
        )
    for volume in outcome.volumes:
        total = volume["sent"] + volume["received"]
        say(f"  {volume['scheme']:<16} {total / 1e6:8.2f} MB per worker and step")
    peak = max(memory["peak_parameter_bytes"] for memory in outcome.worker_memory)
    whole = outcome.worker_memory[0]["model_bytes"]
    say(f"a worker held at most {peak / whole:.0%} of the parameters at a time; between steps none")
    if outcome.stored:
        states, arena = (outcome.stored[name] / 1e6 for name in ("states", "arena"))
        say(f"the optimizer node kept {states:.1f} MB of model states on disk, and {arena:.1f} MB in memory at most")
    if outcome.drops:
        dropped = ", ".join(f"{reason} {packets}" for reason, packets in sorted(outcome.drops.items()))
        say(f"dropped in the switch: {dropped}")
    say(f"weights sha256 {outcome.digest[:16]}, report {output / 'report.html'}")
