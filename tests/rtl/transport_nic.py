"""A Verilated transport as an object: settings in, vectors and frames in and out, counters by name."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.rtl.generated.nic_regs import Role
from catchment.rtl.harness.library import RtlLibrary, load
from catchment.rtl.packed import layout
from catchment.rtl.sources import RTL
from catchment.wire.generated.constants import UDP_PORT, DataType

VECTOR_BYTES = 256
_SETTINGS = layout("transport_pkg", "transport_settings_t")
_STATUS = layout("transport_pkg", "transport_status_t")
_META = layout("transport_pkg", "vector_meta_t")
_PACKAGE = (RTL / "transport" / "transport_pkg.sv").read_text()
# Index of a counter by its name in transport_pkg.sv, without STAT_; rejects by theirs, without REJECT_.
STATS = {name: int(index) for name, index in re.findall(r"STAT_(\w+)\s*=\s*6'd(\d+)", _PACKAGE)}
REJECTS = {name: int(index) for name, index in re.findall(r"REJECT_(\w+)\s*=\s*4'd(\d+)", _PACKAGE)}


@dataclass(frozen=True)
class StreamSettings:
    """stream_settings_t."""

    enable: bool = True
    gen: int = 7
    base_seq: int = 0
    window: int = 64
    slots: int = 64


@dataclass(frozen=True)
class Settings:
    """transport_settings_t; times in clocks."""

    tx: StreamSettings
    rx: StreamSettings
    local_mac: int = 0x02_00_0A_00_00_01
    peer_mac: int = 0x02_00_0A_00_00_FE
    local_ip: int = 0x0A_00_00_01
    peer_ip: int = 0x0A_00_00_FE
    local_port: int = UDP_PORT
    peer_port: int = UDP_PORT
    rto: int = 4000
    rto_most: int = 16000
    resend_delay: int = 0
    heartbeat_interval: int = 400
    wid: int = 3
    pairs: bool = False
    all_reduce: bool = False

    def words(self) -> list[int]:
        own = asdict(self)
        parts = {
            member.name: {inner.name: own[inner.name] for inner in member.inner.members}
            for member in _SETTINGS.members
            if member.inner is not None and member.name not in own
        }
        return _SETTINGS.words({name: {**own, **parts}[name] for name in (m.name for m in _SETTINGS.members)})

    def without(self) -> Settings:
        """Both streams at rest."""
        return replace(self, tx=replace(self.tx, enable=False), rx=replace(self.rx, enable=False))


@dataclass(frozen=True)
class Meta:
    """vector_meta_t."""

    dtype: DataType = DataType.FP32
    exp: int = 0
    next_exp: int = 0
    expv: bool = False
    sat: bool = False
    last: bool = False
    bytes: int = VECTOR_BYTES
    foreign: bool = False

    def word(self) -> int:
        return _META.pack(asdict(self))

    @staticmethod
    def of(word: int) -> Meta:
        fields = _META.unpack(word)
        flags = {name: bool(fields[name]) for name in ("expv", "sat", "last", "foreign")}
        return Meta(**{**fields, **flags, "dtype": DataType(fields["dtype"])})


@dataclass(frozen=True)
class Gaps:
    """The clocks of 256 in which nothing is offered or taken."""

    host_idle: int = 0
    host_stall: int = 0
    net_idle: int = 0
    net_stall: int = 0


@dataclass(frozen=True)
class Status:
    """transport_status_t."""

    tx_ready: bool
    rx_ready: bool
    tx_acked: int
    tx_next: int
    tx_end: int
    tx_credit: int
    rx_ack: int
    rx_consumed: int


@cache
def library(role: Role, parameters: tuple[tuple[str, int], ...] = ()) -> RtlLibrary:
    """The transport of `role` behind C functions."""
    bench = Path(__file__).with_name("transport_bench.cpp")
    lib = load("transport", bench, {**dict(parameters), "ROLE": role.value})
    for name in ("nic_unsent", "nic_stat", "nic_now", "nic_broken_laws"):
        getattr(lib, name).restype = ctypes.c_uint64
    lib.nic_new.restype = ctypes.c_void_p
    return lib


class Nic:
    """One NIC's transport; a context manager."""

    def __init__(self, role: Role, settings: Settings, seed: int = 1, parameters: Mapping[str, int] = {}) -> None:
        self._lib = library(role, tuple(sorted(parameters.items())))
        self._beats = dict(parameters).get("VECTOR_BYTES", VECTOR_BYTES)
        self._nic = ctypes.c_void_p(
            self._lib.nic_new(ctypes.c_uint32(self._beats), ctypes.c_uint32(seed & 0xFFFF_FFFF))
        )
        self.settings = settings
        self.configure(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        broken = self._call("nic_broken_laws")
        self._lib.nic_delete(self._nic)
        if kind is None:
            assert broken == 0, f"{broken} beats changed, vanished or left a gap"

    def _call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._lib, name)(self._nic, *arguments)

    def configure(self, settings: Settings) -> None:
        self.settings = settings
        words = settings.words()
        self._call("nic_settings", (ctypes.c_uint32 * len(words))(*words))

    def gaps(self, gaps: Gaps) -> None:
        self._call(
            "nic_gaps", (ctypes.c_uint32 * 4)(gaps.host_idle, gaps.host_stall, gaps.net_idle, gaps.net_stall)
        )  # fmt: skip

    def reset(self, clocks: int = 4) -> None:
        self._call("nic_reset", ctypes.c_uint32(clocks))

    def run(self, clocks: int) -> None:
        self._call("nic_run", ctypes.c_uint32(clocks))

    def start(self, limit: int = 100_000) -> None:
        """Wait until the streams that are enabled have begun."""
        for _ in range(limit):
            status = self.status()
            if status.tx_ready >= self.settings.tx.enable and status.rx_ready >= self.settings.rx.enable:
                return
            self.run(1)
        raise AssertionError("the streams do not begin")

    def push(self, data: bytes, meta: Meta) -> None:
        self._call("nic_push", data, ctypes.c_uint32(len(data)), ctypes.c_uint64(meta.word()))

    @property
    def unsent(self) -> int:
        """Vectors that the transport has not taken."""
        return int(self._call("nic_unsent"))

    @property
    def now(self) -> int:
        return int(self._call("nic_now"))

    def receive(self, frame: bytes, damaged: bool = False) -> None:
        """A frame comes from the network."""
        self._call("nic_frame", frame, ctypes.c_uint32(len(frame)), ctypes.c_uint32(damaged))

    def frames(self) -> list[tuple[int, bytes]]:
        """What was sent since the last call, each with the clock of its first beat."""
        room, clock = (ctypes.c_uint8 * 16384)(), ctypes.c_uint64()
        out = []
        while count := self._call("nic_take_frame", room, ctypes.byref(clock)):
            out.append((clock.value, bytes(room[:count])))
        return out

    def vectors(self) -> list[tuple[int, bytes, Meta]]:
        """What was handed to the host since the last call, each with the clock of its first beat."""
        room, clock, meta = (ctypes.c_uint8 * 16384)(), ctypes.c_uint64(), ctypes.c_uint64()
        out = []
        while count := self._call("nic_take_vector", room, ctypes.byref(meta), ctypes.byref(clock)):
            out.append((clock.value, bytes(room[:count]), Meta.of(meta.value)))
        return out

    def stat(self, name: str) -> int:
        return int(self._call("nic_stat", ctypes.c_uint32(STATS[name])))

    def rejects(self) -> dict[str, int]:
        """Counts of refused frames by reason, those that are not zero."""
        self.run(64)
        counts = {
            name: int(self._call("nic_stat", ctypes.c_uint32(STATS["REJECTS"] + index)))
            for name, index in REJECTS.items()
        }
        return {name: count for name, count in counts.items() if count}

    def status(self) -> Status:
        words = (ctypes.c_uint32 * 8)()
        self._call("nic_status", words)
        fields = _STATUS.of_words(list(words))
        return Status(bool(fields.pop("tx_ready")), bool(fields.pop("rx_ready")), **fields)
