"""How a switch's address is spelt.

``host:port`` and ``unix:PATH`` are plain; ``tls:FOLDER@host:port`` proves who we are with the certificates of a folder
(`catchment controller certificates`), and asks the switch for a certificate of the same authority for that host.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from catchment.wire.host_port import host_and_port
from catchment.wire.service import AUTHORITY_FILE, CONTROLLER_NAME, OPERATOR_NAME, credential_files

UNIX, TLS = "unix:", "tls:"
_WHO_WE_ARE = (OPERATOR_NAME, CONTROLLER_NAME)
_PROBE_SECONDS = 2.0


class TlsFiles(NamedTuple):
    """Certificate of the authority, own certificate and private key."""

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class SwitchAddress:
    """An address in its parts.

    Attributes:
        target: what gRPC connects to: ``host:port`` or ``unix:PATH``.
        certificates: folder of certificates; None without TLS.
    """

    target: str
    certificates: Path | None = None

    @classmethod
    def parse(cls, text: str) -> SwitchAddress | None:
        """The parts of an address as people write it; None when it is none."""
        if text.startswith(UNIX):
            return cls(text) if text != UNIX else None
        folder, _, target = text.removeprefix(TLS).rpartition("@") if text.startswith(TLS) else ("", "", text)
        host, port = host_and_port(target) or ("", 0)
        if not host or not port or text.startswith(TLS) != bool(folder):
            return None
        return cls(target, Path(folder) if folder else None)

    def __str__(self) -> str:
        return self.target if self.certificates is None else f"{TLS}{self.certificates}@{self.target}"

    @property
    def socket_file(self) -> Path | None:
        """The file of a Unix socket; None for a TCP port."""
        return Path(self.target.removeprefix(UNIX)) if self.target.startswith(UNIX) else None

    def files(self) -> TlsFiles | None:
        """The files that prove who this client is: the operator's, or, where there are none, the controller's."""
        if self.certificates is None:
            return None
        folder = self.certificates
        own = next((n for n in _WHO_WE_ARE if (folder / credential_files(n)[0]).exists()), OPERATOR_NAME)
        return TlsFiles(*(folder / file for file in (AUTHORITY_FILE, *credential_files(own))))

    def is_listening(self) -> bool:
        """Whether a server takes connections there; waits 2 s at most."""
        with contextlib.suppress(OSError):
            if self.socket_file is not None:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.settimeout(_PROBE_SECONDS)
                    probe.connect(str(self.socket_file))
                return True
            endpoint = host_and_port(self.target)
            if endpoint is not None:
                socket.create_connection(endpoint, _PROBE_SECONDS).close()
                return True
        return False
