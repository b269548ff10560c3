"""What the networks under test are made of."""

from __future__ import annotations

import os
from dataclasses import replace

from lab import ROOT

from catchment.controlplane.topology import Target, Topology

PROGRAM, SLOTS_PROGRAM = (ROOT / "p4src" / name for name in ("luwu.p4", "p4sgd.p4"))
WORKERS = [f"w{i}" for i in range(8)]
# BMv2 is some hundred times slower and its queues hold 64 packets.
LANES = {Target.EMBEDDED: 64, Target.BMV2: 8}


def unique(topology: Topology, name: str, target: Target) -> Topology:
    """The same under a name that no other run has."""
    return replace(topology, name=f"e2e-{name}-{target}-{os.getpid()}")
