"""How a switch's address is spelt, and the channel that leads there.

``host:port`` and ``unix:PATH`` are plain; ``tls:FOLDER@host:port`` proves who we are with the certificates of a folder
(`catchment controller certificates`), and asks the switch for a certificate of the same authority for that host.
"""

from __future__ import annotations

import contextlib
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from catchment.controlplane.client.errors import SwitchError
from catchment.wire.service import AUTHORITY_FILE, CONTROLLER_NAME, OPERATOR_NAME, credential_files

UNIX, TLS = "unix:", "tls:"
_HOST_PORT = re.compile(r"(?P<host>.+):(?P<port>[0-9]{1,5})")
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
        found = _HOST_PORT.fullmatch(target)
        if found is None or not 0 < int(found["port"]) < 65536 or text.startswith(TLS) != bool(folder):
            return None
        return cls(target, Path(folder) if folder else None)

    def __str__(self) -> str:
        return self.target if self.certificates is None else f"{TLS}{self.certificates}@{self.target}"

    @property
    def socket_file(self) -> Path | None:
        """The file of a Unix socket; None for a TCP port."""
        return Path(self.target.removeprefix(UNIX)) if self.target.startswith(UNIX) else None

    def files(self) -> TlsFiles | None:
        """The files that prove who we are: the operator's, or, where there are none, the controller's."""
        if self.certificates is None:
            return None
        folder = self.certificates
        own = next((n for n in _WHO_WE_ARE if (folder / credential_files(n)[0]).exists()), OPERATOR_NAME)
        return TlsFiles(*(folder / file for file in (AUTHORITY_FILE, *credential_files(own))))

    def credentials(self) -> grpc.ChannelCredentials | None:
        """What TLS needs, read anew for each connection; None without TLS.

        Raises:
            SwitchError: a file cannot be read.
        """
        files = self.files()
        if files is None:
            return None
        try:
            authority, certificate, key = (file.read_bytes() for file in files)
        except OSError as error:
            raise SwitchError(
                f"switch at {self}: cannot read {error.filename}: {error.strerror}; "
                f"`catchment controller certificates {self.certificates}` makes a set"
            ) from None
        return grpc.ssl_channel_credentials(authority, key, certificate)

    def is_listening(self) -> bool:
        """Whether somebody takes connections there; waits 2 s at most."""
        with contextlib.suppress(OSError):
            if self.socket_file is not None:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.settimeout(_PROBE_SECONDS)
                    probe.connect(str(self.socket_file))
                return True
            host, _, port = self.target.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS).close()
            return True
        return False


def parse(address: str) -> SwitchAddress:
    """The parts of an address.

    Raises:
        SwitchError: it is none.
    """
    found = SwitchAddress.parse(address)
    if found is None:
        raise SwitchError(f"{address!r} is no switch's address: host:port, unix:PATH or tls:FOLDER@host:port")
    return found


def open_channel(address: str) -> grpc.Channel:
    """A channel to a switch; it connects when it is used.

    Raises:
        SwitchError: the address is none, or a file of its certificates cannot be read.
    """
    parts = parse(address)
    credentials = parts.credentials()
    return (
        grpc.insecure_channel(parts.target) if credentials is None else grpc.secure_channel(parts.target, credentials)
    )


def open_async_channel(address: str) -> Any:
    """As `open_channel`, for asyncio."""
    parts = parse(address)
    credentials = parts.credentials()
    if credentials is None:
        return grpc.aio.insecure_channel(parts.target)
    return grpc.aio.secure_channel(parts.target, credentials)
