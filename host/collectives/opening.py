"""What the C library needs to open one rank's way to a switch, checked before it is asked."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from catchment.host.collectives.calls import nanoseconds, positive_nanoseconds
from catchment.host.collectives.errors import CollectiveError, wrong
from catchment.host.collectives.library import Config
from catchment.host.collectives.whole_number import whole
from catchment.host.errors import EndpointError
from catchment.host.transport.addresses import Address, checked_address
from catchment.host.transport.stream import Stream
from catchment.wire.generated.constants import MAX_WORKERS

REASON_BYTES = 512
"""Room for what the C library says when it cannot open."""

_PLACES = f"give the host's worker index, 0..{MAX_WORKERS - 1}"

WAYS = {"": 0, "tcp": 1, "mptcp": 2}
"""catchment_way: a switch, or a ring of connections of a kind."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: `timeout` and `absent` of pending operations, `spin` of a thread that waits; see `Communicator`."""

    timeout: float
    spin: float
    absent: float | None


def config_of(
    stream: Stream,
    *,
    rank: int,
    local: Address,
    switch: Address,
    path: str | None,
    timing: Timing,
    window: int | None,
    switch_name: str = "",
    way: int = 0,
    place: int | None = None,
) -> Config:
    """The C library's configuration of a rank; `path` is its shared-memory port, None for UDP; `way` is of WAYS.

    `place`: as for `Communicator`.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if not isinstance(stream, Stream):
        raise wrong(f"a stream {stream!r}", "give a host.Stream, the same on all ranks")
    rank = whole("rank", rank, "give 0..size-1")
    if not 0 <= rank < stream.workers:
        raise wrong(f"rank {rank} of {stream.workers}", "give 0..size-1")
    if place is not None and not 0 <= whole("place", place, _PLACES) < MAX_WORKERS:
        raise wrong(f"place {place}", _PLACES)
    timeout_ns = positive_nanoseconds("a timeout of", timing.timeout)
    absent_ns = 0
    if timing.absent is not None:
        absent_ns = positive_nanoseconds("a switch that may be absent for", timing.absent)
    if not isinstance(switch_name, str):
        raise wrong(f"a switch named {switch_name!r}", "give its name, a str")
    if stream.key and way:
        raise wrong("a ring with tags", "no switch checks them there: make the job without --tags, or without the ring")
    windows = f"give 1..{stream.slots}, the stream's slots"
    if window is not None and not 1 <= whole("a window of", window, windows) <= stream.slots:
        raise wrong(f"a window of {window} vectors", windows)
    try:
        local = checked_address("local", local, least=0 if path is None else 1)
        switch = checked_address("switch", switch, least=1)
    except EndpointError as error:
        raise wrong(error.message, error.hint) from error
    return Config(
        gen=stream.gen,
        ranks=stream.workers,
        rank=rank,
        slots=stream.slots,
        window=window or 0,
        base_seq=stream.base_seq,
        lanes=stream.lanes,
        local_port=local[1],
        switch_port=switch[1],
        local_ip=local[0].encode(),
        switch_ip=switch[0].encode(),
        shm_path=None if path is None else path.encode(),
        attach_ns=timeout_ns,
        timeout_ns=timeout_ns,
        spin_ns=nanoseconds("a thread that looks for frames for", timing.spin),
        absent_ns=absent_ns,
        switch_name=switch_name.encode() or None,
        way=way,
        packed=stream.packed,
        key=bytes.fromhex(stream.key) or None,
        key_frames=stream.key_frames,
        place=0 if place is None else place + 1,
        term_bits=stream.term_bits if stream.key else 0,
    )


def not_opened(config: Config, reason: ctypes.Array[ctypes.c_char]) -> CollectiveError:
    """Why the C library could not open a rank's port."""
    where = f"a UDP socket on {config.local_ip.decode()}:{config.local_port}"
    hint = "is the address of this host right, and the port free?"
    if config.shm_path is not None:
        where = config.shm_path.decode()
        hint = "is the switch on this machine running with --port N=shm:PATH, and may this user attach?"
    return CollectiveError(f"cannot open {where}: {reason.value.decode()}", kind="system", hint=hint)
