"""Fixtures of the command's tests: those of the control plane."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "controlplane"))

from command_lab import call, run, topology
from switch_fixtures import client, fake, held, place, timing

__all__ = ["call", "client", "fake", "held", "place", "run", "timing", "topology"]
