"""One NIC in simulation: its host's memory is a numpy array, its registers a bus, its MAC two queues of frames."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from catchment.rtl.driver.bus import BusError
from catchment.rtl.generated.nic_regs import Role
from catchment.rtl.harness.library import RtlLibrary, load

_ROOM = 16384
_OKAY = 0
_NO_ANSWER = 0xFF


class _Pace(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint32) for name in ("latency", "read_stall", "write_stall", "address_stall")
    )  # fmt: skip


class _Counts(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("read_bursts", "read_beats", "write_bursts", "write_beats", "errors", "broken_laws")
    )


class _Marks(ctypes.Structure):
    _fields_ = tuple(
        (f"{port}_{end}", ctypes.c_uint64) for port in ("ask", "read", "write", "tx", "rx") for end in ("first", "last")
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """How memory and MAC keep the NIC waiting: `latency` in clocks, the others of 256 clocks how many stand still."""

    latency: int = 20
    read_stall: int = 0
    write_stall: int = 0
    address_stall: int = 0
    tx_stall: int = 0
    rx_idle: int = 0


@dataclass(frozen=True, slots=True)
class SentFrame:
    """A frame that left the NIC, and the clocks of its first and last beat; `cut` by a soft reset."""

    data: bytes
    first: int
    last: int
    cut: bool


@cache
def _library(parameters: tuple[tuple[str, int], ...], waves: bool) -> RtlLibrary:
    bench = Path(__file__).with_name("nic_harness.cpp")
    library = load("nic", bench, dict(parameters), waves=waves)
    for name in ("nic_new", "catchment_device"):
        getattr(library, name).restype = ctypes.c_void_p
    for name in ("nic_now", "nic_waiting"):
        getattr(library, name).restype = ctypes.c_uint64
    for name in ("nic_irq", "nic_write", "nic_read", "nic_take"):
        getattr(library, name).restype = ctypes.c_uint32
    return library


class VerilatedNic:
    """A WorkerNIC or AggNIC; a context manager, and the `RegisterBus` of its driver.

    Args:
        role: which of the two NICs it is.
        memory: bytes of the host, shared with the NIC; its first byte is at physical address `base`.
        parameters: of the module, as WINDOW.
        relax: clocks that pass while the driver waits.
        waves: an FST file that gets every signal of the module from now on; a build of its own, and slow.
    """

    def __init__(
        self, role: Role, memory: NDArray[np.uint8], *, base: int = 0, seed: int = 1,
        parameters: Mapping[str, int] | None = None, relax: int = 32, waves: Path | None = None,
    ) -> None:  # fmt: skip
        self._library = _library(tuple(sorted({**(parameters or {}), "ROLE": role.value}.items())), waves is not None)
        self._memory = memory  # the NIC has its address: it must live as long
        self._relax = relax
        self._nic = ctypes.c_void_p(
            self._library.nic_new(
                memory.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(base), ctypes.c_uint64(memory.size),
                ctypes.c_uint32(seed & 0xFFFF_FFFF),
            )
        )  # fmt: skip
        if waves is not None:
            self._library.nic_trace(self._nic, str(waves).encode())
        self.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            broken = self.memory_counts()["broken_laws"]
        finally:
            self._library.nic_end_trace(self._nic)
            self._library.nic_delete(self._nic)
        if kind is None and broken:
            raise BusError(f"the NIC broke AXI4's rules {broken} times (rtl/harness/axi_memory.hpp)")

    # ---- time ------------------------------------------------------------------------------------------------

    def reset(self, clocks: int = 4) -> None:
        """The hard reset."""
        self._library.nic_reset(self._nic, ctypes.c_uint32(clocks))

    def run(self, clocks: int) -> None:
        """Let `clocks` pass."""
        self._library.nic_run(self._nic, ctypes.c_uint32(clocks))

    def relax(self) -> None:
        """What the driver calls while it waits."""
        self.run(self._relax)

    @property
    def now(self) -> int:
        """Clocks since it was made."""
        return int(self._library.nic_now(self._nic))

    # ---- a clock that the caller runs --------------------------------------------------------------------------

    @property
    def device(self) -> tuple[int, int]:
        """Addresses of its table of functions (rtl/harness/device.hpp) and of itself, for the program that runs it.

        From then on `run`, `read`, `write`, `receive` and `frames` are not to be used, and `check` says what failed.
        """
        return int(self._library.catchment_device()), int(self._nic.value or 0)

    def check(self) -> None:
        """Nothing, unless an assertion has failed in clocks that another program ran.

        Raises:
            RtlFailedError: one has.
        """
        self._library.nic_now(self._nic)

    # ---- registers --------------------------------------------------------------------------------------------

    def read(self, address: int) -> int:
        """A register's word.

        Raises:
            BusError: SLVERR, or no answer.
        """
        value = ctypes.c_uint32()
        answer = self._library.nic_read(self._nic, ctypes.c_uint32(address), ctypes.byref(value))
        self._check(answer, f"read of {address:#05x}")
        return value.value

    def write(self, address: int, value: int, strobes: int = 0xF) -> None:
        """Write a word, or the bytes of it that `strobes` names.

        Raises:
            BusError: SLVERR, or no answer.
        """
        answer = self._library.nic_write(
            self._nic, ctypes.c_uint32(address), ctypes.c_uint32(value), ctypes.c_uint32(strobes)
        )
        self._check(answer, f"write to {address:#05x}")

    @property
    def irq(self) -> bool:
        """The interrupt line."""
        return bool(self._library.nic_irq(self._nic))

    @staticmethod
    def _check(answer: int, what: str) -> None:
        if answer != _OKAY:
            problem = "was not answered" if answer == _NO_ANSWER else f"was answered with error {answer}"
            raise BusError(f"{what} {problem}")

    # ---- frames -----------------------------------------------------------------------------------------------

    def receive(self, frame: bytes, *, damaged: bool = False) -> None:
        """A frame, without its FCS, comes to the MAC; it waits behind those before it."""
        self._library.nic_receive(self._nic, frame, ctypes.c_uint32(len(frame)), ctypes.c_uint32(damaged))

    @property
    def waiting(self) -> int:
        """Frames that are not wholly in the NIC yet."""
        return int(self._library.nic_waiting(self._nic))

    def frames(self) -> list[SentFrame]:
        """What was sent since the last call."""
        room = (ctypes.c_uint8 * _ROOM)()
        clocks, bad = (ctypes.c_uint64 * 2)(), ctypes.c_uint32()
        sent = []
        while count := self._library.nic_take(self._nic, room, ctypes.c_uint32(_ROOM), clocks, ctypes.byref(bad)):
            sent.append(SentFrame(bytes(room[:count]), clocks[0], clocks[1], bool(bad.value)))
        return sent

    # ---- surroundings -----------------------------------------------------------------------------------------

    def pace(self, pace: Pace) -> None:
        """Set the pace of memory and lines from now on."""
        *memory, tx_stall, rx_idle = astuple(pace)
        self._library.nic_pace(
            self._nic, ctypes.byref(_Pace(*memory)), ctypes.c_uint32(tx_stall), ctypes.c_uint32(rx_idle)
        )

    def fail_memory(self, begin: int, end: int) -> None:
        """Physical addresses from `begin` up to `end` answer with an error; none if both are equal."""
        self._library.nic_errors(self._nic, ctypes.c_uint64(begin), ctypes.c_uint64(end))

    def memory_counts(self) -> dict[str, int]:
        """read_bursts, read_beats, write_bursts, write_beats, errors, broken_laws."""
        return self._numbers("nic_counts", _Counts())

    def marks(self) -> dict[str, int]:
        """Clocks of the first and last of ask (read addresses), read, write, tx and rx since the last call; 0: none."""
        return self._numbers("nic_marks", _Marks())

    def _numbers(self, function: str, into: Any) -> dict[str, int]:
        getattr(self._library, function)(self._nic, ctypes.byref(into))
        return {name: int(getattr(into, name)) for name, _ in into._fields_}
