"""Fixtures of the control plane's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from switch_fixtures import client, fake, held, place, timing

__all__ = ["client", "fake", "held", "place", "timing"]
