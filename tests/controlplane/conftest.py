"""Fixtures of the control plane's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from switch_fixtures import call, client, fake, held, place, timing

__all__ = ["call", "client", "fake", "held", "place", "timing"]
