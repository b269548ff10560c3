"""How an endpoint of TCP is spelt: HOST:PORT, an IPv6 host in brackets."""

from __future__ import annotations

import re
from typing import Final

_PORT: Final = re.compile("[0-9]{1,5}")
_MAX_PORT: Final = 65535


def host_and_port(text: str) -> tuple[str, int] | None:
    """The parts of HOST:PORT, or of PORT alone, with host "" then; None if the port is none of 0 to 65535."""
    host, _, port = text.rpartition(":")
    if _PORT.fullmatch(port) is None or int(port) > _MAX_PORT:
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)
