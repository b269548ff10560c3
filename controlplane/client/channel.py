"""The channel to a switch, with the credentials that its address names."""

from __future__ import annotations

from typing import Any

import grpc

from catchment.controlplane.client.errors import SwitchError
from catchment.controlplane.networks.address import SwitchAddress
from catchment.wire.channel_options import STREAMS_END


def parse(address: str) -> SwitchAddress:
    """The parts of an address.

    Raises:
        SwitchError: it is none.
    """
    found = SwitchAddress.parse(address)
    if found is None:
        raise SwitchError(f"{address!r} is no switch's address: host:port, unix:PATH or tls:FOLDER@host:port")
    return found


def _credentials(address: SwitchAddress) -> grpc.ChannelCredentials | None:
    """What TLS needs, read anew for each connection; None without TLS."""
    files = address.files()
    if files is None:
        return None
    try:
        authority, certificate, key = (file.read_bytes() for file in files)
    except OSError as error:
        raise SwitchError(
            f"switch at {address}: cannot read {error.filename}: {error.strerror}; "
            f"`catchment controller certificates {address.certificates}` makes a set"
        ) from None
    return grpc.ssl_channel_credentials(authority, key, certificate)


def open_channel(address: str) -> grpc.Channel:
    """A channel to a switch; it connects when it is used.

    Raises:
        SwitchError: the address is none, or a file of its certificates cannot be read.
    """
    parts = parse(address)
    credentials = _credentials(parts)
    if credentials is None:
        return grpc.insecure_channel(parts.target, STREAMS_END)
    return grpc.secure_channel(parts.target, credentials, STREAMS_END)


def open_async_channel(address: str) -> Any:
    """A channel for asyncio; errors as `open_channel`."""
    parts = parse(address)
    credentials = _credentials(parts)
    if credentials is None:
        return grpc.aio.insecure_channel(parts.target, STREAMS_END)
    return grpc.aio.secure_channel(parts.target, credentials, STREAMS_END)
