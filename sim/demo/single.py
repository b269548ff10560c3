"""The process that trains without a network, for the comparison.

python -m sim.demo.single PLAN.json float|exact
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from sim.demo import events, reference
from sim.demo.data import load_corpus
from sim.demo.errors import DemoError
from sim.demo.options import Plan
from sim.demo.root import digest_of
from sim.demo.twin import train_exactly

EXACT, FLOAT = "exact", "float"


def main() -> None:
    """Entry point: trains with float sums (sim.demo.reference) or with the wire's integers (sim.demo.twin)."""
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
    except (DemoError, OSError) as error:
        events.tell(events.ERROR, kind=type(error).__name__, text=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
