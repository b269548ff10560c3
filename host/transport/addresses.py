"""Addresses of an endpoint and of its switch: IPv4 addresses, or a shared-memory port."""

from __future__ import annotations

import errno
import ipaddress

from catchment.host.errors import EndpointError

Address = tuple[str, int]


def checked_address(name: str, address: Address, *, least: int) -> Address:
    """`address`, if it is an IPv4 address and a port of at least `least` (0: any port will do).

    Raises:
        EndpointError: kind ``argument``.
    """
    try:
        host, port = address
        host = str(ipaddress.IPv4Address(host))
        if isinstance(port, bool) or not isinstance(port, int) or not least <= port <= 0xFFFF:
            raise ValueError(f"port {port!r}")
    except (TypeError, ValueError) as error:
        raise EndpointError(
            f"the {name} address {address!r} is not one: {error}",
            kind="argument",
            hint='give ("10.0.0.3", 51836): an IPv4 address and a port',
        ) from error
    return host, port


def shm_path(port: str) -> str:
    """The path in ``shm:PATH``.

    Raises:
        EndpointError: kind ``argument``.
    """
    kind, _, path = port.partition(":") if isinstance(port, str) else ("", "", "")
    if kind != "shm" or not path:
        raise EndpointError(
            f"a port {port!r}",
            kind="argument",
            hint='give "shm:PATH", the path that the switch was started with (--port N=shm:PATH), or leave it out',
        )
    return path


def cannot_open(error: Exception, *, local: Address, switch: Address, path: str | None) -> EndpointError:
    """What to tell when the port that an endpoint wants, UDP or at `path`, cannot be had."""
    peer = f"{switch[0]}:{switch[1]}"
    what = f"a UDP socket on {local[0]}:{local[1]}" if path is None else "the shared-memory port"
    if not isinstance(error, OSError):
        return EndpointError(
            f"cannot open {what}: {error}",
            kind="system",
            peer=peer,
            hint="is the switch on this machine running with --port N=shm:PATH, and may this user attach?",
        )
    too_long = error.errno == errno.EMSGSIZE
    return EndpointError(
        f"cannot open {what}: {error.strerror}",
        kind="system",
        peer=peer,
        hint="lower param_bytes or lanes, or raise the MTU of the interface (bytes=N of a shared-memory port)"
        if too_long
        else "is the address of this host right, and the port free?",
    )
