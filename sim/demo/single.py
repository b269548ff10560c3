"""The process that trains without a network, for the comparison.

python -m sim.demo.single PLAN.json
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from sim.demo import events, reference
from sim.demo.errors import DemoError
from sim.demo.options import Plan
from sim.demo.twin import train_exactly


def main() -> None:
    """Entry point: the exact twin for its first passes, then the float reference for all."""
    torch.set_num_threads(1)  # as in the workers: the order of every sum is the same
    try:
        events.await_go()
        options = Plan.read(Path(sys.argv[1])).options
        train_exactly(options, options.exact_passes, events.tell)
        events.tell(events.DONE, **reference.train(options, events.tell))
    except (DemoError, OSError) as error:
        events.tell(events.ERROR, kind=type(error).__name__, text=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
