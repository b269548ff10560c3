"""`make bench-world`: events per second of the event kernel on one core, beside the standard library's binary heap.

Processor time, so that a busy machine's other programs count little.
"""

from __future__ import annotations

import json
import subprocess
from statistics import median

from bench.report import Figure, publish
from catchment.checkout import NATIVE

WORKERS = (64, 1024, 4096)
EVENTS = 10_000_000
ROUNDS = 3
AIM = 10e6
KINDS = {
    "bare": "nothing but the next event",
    "lines": "a frame's arrival at a hop",
    "faults": "the same on faulty lines",
}


def measure(kind: str, workers: int) -> tuple[float, int]:
    """Events per second of processor time, the median, and the digest of what happened, equal in every round."""
    rates, digests = [], set()
    for _ in range(ROUNDS):
        command = [str(NATIVE / "bench" / "world-load"), kind, str(workers), str(EVENTS)]
        outcome = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        rates.append(outcome["events"] / outcome["seconds"])
        digests.add(outcome["digest"])
    if len(digests) != 1:
        raise RuntimeError(f"{kind} with {workers} workers: equal runs have had different outcomes")
    return median(rates), digests.pop()


def main() -> None:
    figures = []
    for workers in WORKERS:
        heap, expected = measure("heap", workers)
        for kind, what in KINDS.items():
            rate, digest = measure(kind, workers)
            if kind == "bare" and digest != expected:
                raise RuntimeError(f"the wheel and the heap disagree with {workers} workers")
            name = f"{workers} workers: {what}"
            figures.append(Figure(name, rate / 1e6, "M events/s", "binary heap, bare", heap / 1e6))
        print(f"{workers} workers: measured")
    slow = [figure.name for figure in figures if figure.value * 1e6 < AIM]
    publish("world", figures, [f"aim: {AIM / 1e6:.0f} M events/s; below it: {', '.join(slow) or 'nothing'}"])


if __name__ == "__main__":
    main()
