"""What no group of proxies has more of."""

from __future__ import annotations

from typing import Final

MOST_CLIENTS: Final = 1 << 16
