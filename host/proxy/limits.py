"""What no group of proxies has more of."""

from __future__ import annotations

from typing import Final

MOST_CLIENTS: Final = 1 << 16
LONGEST: Final = 10**8
"""Seconds: no system waits for much longer."""
