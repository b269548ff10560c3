"""The process that trains without a network, for the comparison.

python -m catchment.demo.single PLAN.json float|exact
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from catchment.sim.lab import events
from catchment.sim.lab.errors import LabError
from catchment.sim.training import reference
from catchment.sim.training.data import load_corpus
from catchment.sim.training.options import Plan
from catchment.sim.training.root import digest_of
from catchment.sim.training.twin import train_exactly

EXACT, FLOAT = "exact", "float"


def main() -> None:
    """Entry point: trains with float sums (sim/training/reference.py) or with the wire's integers (twin.py)."""
    torch.set_num_threads(1)  # as in the workers: the order of every sum is the same
    try:
        path, sums = sys.argv[1:3]
        options = Plan.read(Path(path)).options
        corpus = load_corpus()
        events.await_go()
        if sums == EXACT:
            trained = train_exactly(options, len(options.passes), events.tell, corpus)
        else:
            trained = reference.train(options, events.tell, corpus)
        events.tell(events.DONE, digest=digest_of(trained.master))
    except (LabError, OSError) as error:
        events.tell(events.ERROR, kind=type(error).__name__, text=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
