"""What the control plane tells the switch model: the rows of the tables of p4src/luwu.p4, as plain values.

MAC addresses, IPv4 addresses, bitmaps and sequence numbers are unsigned integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.sim.golden.tags import term_number
from catchment.wire.generated.constants import UDP_PORT, Header, Mode


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker, or a child rack, on a port.  `own`: its bit; `full`: every worker's bit; `base`, `mask`: slots;
    `src_ip`, `src_udp`: where its frames must come from."""

    mode: Mode
    wid: int
    own: int
    base: int
    mask: int
    full: int
    job: int
    group: int
    up_port: int = 0
    up_wid: int = 0
    src_ip: int = 0
    src_udp: int = UDP_PORT


@dataclass(frozen=True, slots=True)
class Root:
    """The root, or the parent switch, on a port; `src_ip`, `src_udp`: where its frames must come from."""

    mode: Mode
    job: int
    group: int
    src_ip: int = 0
    src_udp: int = UDP_PORT


@dataclass(frozen=True, slots=True)
class Binding:
    """The host on a port: the only addresses that it may speak from."""

    mac: int
    ip: int


@dataclass(frozen=True, slots=True)
class Receiver:
    """The addresses that egress writes for one receiver."""

    dst_mac: int
    dst_ip: int
    dst_udp: int
    src_mac: int
    src_ip: int


@dataclass(frozen=True, slots=True)
class Fault:
    """Drop on `port` with probability threshold / 2^32 what matches `type & type_mask`; larger priority wins."""

    port: int
    type: int
    type_mask: int
    threshold: int
    priority: int = 1


@dataclass(frozen=True, slots=True)
class TagKey:
    """The 16 bytes under which a stream's frames from a port have tags, and the worker index that they say.

    `odd`: of the frames whose number has a 1 in `term_bit`; 0: there is one key for all.
    """

    key: bytes
    wid: int
    odd: bytes = b""
    term_bit: int = 0

    def of(self, header: Header) -> bytes:
        """The key of a frame."""
        return self.odd if term_number(header) & self.term_bit else self.key


@dataclass(slots=True)
class Tables:
    """All rows: `jobs` and `receivers` by (gen, port), `own_addresses` IP -> MAC, `l2` MAC -> port, groups -> ports,
    `bindings`: port -> its host, None for a port to another switch; `strangers`: whether a port without a binding may
    speak; `switch_addresses`: IP -> whether it is this switch's own; `packed`: generations of the streams whose vectors
    may have packed lanes; `tags` by (gen, port): streams whose frames have tags."""

    jobs: dict[tuple[int, int], Worker | Root] = field(default_factory=dict)
    receivers: dict[tuple[int, int], Receiver] = field(default_factory=dict)
    own_addresses: dict[int, int] = field(default_factory=dict)
    l2: dict[int, int] = field(default_factory=dict)
    flood_group: int | None = None
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    bindings: dict[int, Binding | None] = field(default_factory=dict)
    strangers: bool = True
    switch_addresses: dict[int, bool] = field(default_factory=dict)
    ingress_faults: list[Fault] = field(default_factory=list)
    egress_faults: list[Fault] = field(default_factory=list)
    packed: set[int] = field(default_factory=set)
    tags: dict[tuple[int, int], TagKey] = field(default_factory=dict)
