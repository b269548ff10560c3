"""A Verilated worker of P4SGD as an object: memories and settings in, frames in and out, weights back."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from catchment.rtl.harness.library import RtlLibrary, load
from catchment.rtl.packed import Layout, PackedError, Values, layout
from catchment.rtl.verilate import library_path
from catchment.wire.generated.constants import UDP_PORT
from catchment.wire.generated.glm_numbers import CHUNK, PLANES, ROUND_SLOTS, ROW_LANES, LossCode

ROUNDS = layout("glm_pkg", "rounds_t")
TRAINING = layout("glm_pkg", "training_t")
_COUNTS = layout("glm_pkg", "worker_counts_t")
# An event's number is its bit.
_EVENTS = tuple(member.name for member in reversed(layout("glm_pkg", "worker_events_t").members))
_ROOM = 2048
_HARNESS = Path(__file__).with_name("glm_harness.cpp")


class HarnessError(Exception):
    """The worker does not get done, or broke a rule of its ports."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """rounds_t: where a worker's frames go, and how its rounds are numbered; `rto` in clocks."""

    gen: int
    wid: int
    local_mac: int
    local_ip: int
    switch_mac: int
    switch_ip: int
    slots: int = ROUND_SLOTS
    base_seq: int = 0
    rto: int = 4000

    def values(self, enable: bool = True) -> Values:
        """The struct's members."""
        return {
            "enable": enable, "gen": self.gen, "base_seq": self.base_seq, "slots": self.slots, "rto": self.rto,
            "wid": self.wid,
            "address": {
                "local_mac": self.local_mac, "peer_mac": self.switch_mac,
                "local_ip": self.local_ip, "peer_ip": self.switch_ip, "local_port": UDP_PORT, "peer_port": UDP_PORT,
            },
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Training:
    """training_t, without what the memories say; `batch` in micro-batches."""

    bits: int
    batch: int
    loss: LossCode
    forward_shift: int
    multiplier: int
    update_shift: int
    epochs: int = 1

    def values(self, chunks: int, micro_batches: int) -> Values:
        """The struct's members."""
        return {
            "bits": self.bits, "chunks": chunks, "micro_batches": micro_batches, "batch": self.batch,
            "epochs": self.epochs, "loss": self.loss, "forward_shift": self.forward_shift,
            "multiplier": self.multiplier, "update_shift": self.update_shift,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Build:
    """Parameters of the module glm_worker."""

    engines: int = 1
    model_rows: int = 16384
    replay_words: int = 8192
    buffer_words: int = 256
    slots: int = ROUND_SLOTS

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters as the module names them."""
        return {
            "ENGINES": self.engines, "MODEL_ROWS": self.model_rows, "REPLAY_WORDS": self.replay_words,
            "BUFFER_WORDS": self.buffer_words, "SLOTS": self.slots,
        }  # fmt: skip

    @property
    def compiled(self) -> bool:
        """It is there; else its first worker compiles it, which takes a minute or more."""
        return library_path("glm_worker", _HARNESS, self.parameters).is_file()


@dataclass(frozen=True, slots=True)
class Counts:
    """worker_counts_t."""

    begun: int
    repeated: int
    sums: int
    confirmed: int
    unasked: int
    refused: int
    reason: int
    clocks: int
    starved: int
    saturated: int
    peer_saturated: int
    error: int


def _words(layout: Layout, values: Values) -> ctypes.Array[ctypes.c_uint32]:
    try:
        words = layout.words(values)
    except PackedError as error:
        raise HarnessError(str(error)) from error
    return (ctypes.c_uint32 * len(words))(*words)


@cache
def _library(shape: Build) -> RtlLibrary:
    library = load("glm_worker", _HARNESS, shape.parameters)
    library.glm_new.restype = ctypes.c_void_p
    for name in ("glm_now", "glm_last_received", "glm_broken_laws"):
        getattr(library, name).restype = ctypes.c_uint64
    return library


@dataclass
class VerilatedWorker:
    """One worker; a context manager.

    Args:
        shape: of the hardware.
        words: its engines' woven memories (docs/explanation/glm.md), shape (engines, micro_batches, chunks, 16, 8).
        labels: shape (micro_batches, 8), int32.
    """

    shape: Build
    words: NDArray[np.uint64]
    labels: NDArray[np.int64]
    seed: int = 1
    _kept: list[NDArray[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        engines, micro_batches, chunks, planes, _ = self.words.shape
        if engines != self.shape.engines or planes != PLANES or micro_batches != len(self.labels):
            raise HarnessError(f"memories of shape {self.words.shape} for {self.shape.engines} engines")
        if chunks * CHUNK > self.shape.model_rows * ROW_LANES:
            raise HarnessError(f"{chunks * CHUNK} weights for an engine that has {self.shape.model_rows * ROW_LANES}")
        self.chunks, self.micro_batches = chunks, micro_batches
        self._library = _library(self.shape)
        self._worker = ctypes.c_void_p(
            self._library.glm_new(ctypes.c_uint32(engines), ctypes.c_uint32(self.seed & 0xFFFF_FFFF))
        )
        beats = np.zeros((micro_batches, 16), np.int32)
        beats[:, : self.labels.shape[1]] = self.labels
        self._bases = [(port + 1) << 32 for port in range(engines + 1)]
        for port, memory in enumerate([*np.ascontiguousarray(self.words), beats]):
            self._kept.append(memory)
            self._call(
                "glm_memory", ctypes.c_uint32(port), memory.ctypes.data_as(ctypes.c_void_p),
                ctypes.c_uint64(self._bases[port]), ctypes.c_uint64(memory.nbytes),
            )  # fmt: skip
        self._call("glm_reset", ctypes.c_uint32(8))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            broken = self._call("glm_broken_laws")
        finally:
            self._library.glm_delete(self._worker)
        if kind is None and broken:
            raise HarnessError(f"{broken} bursts broke AXI4's rules (rtl/harness/read_port.hpp)")

    def _call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._library, name)(self._worker, *arguments)

    def pace(self, latency: int = 20, stall: int = 0, tx_stall: int = 0) -> None:
        """Memory's latency in clocks, and in how many of 256 clocks it, or the MAC, stands still."""
        self._call("glm_pace", ctypes.c_uint32(latency), ctypes.c_uint32(stall), ctypes.c_uint32(tx_stall))

    def join(self, rounds: Rounds) -> None:
        """Begin the stream of rounds."""
        self._call("glm_rounds", _words(ROUNDS, rounds.values(False)))
        self.run(8)
        self._call("glm_rounds", _words(ROUNDS, rounds.values()))
        self.run(8)

    def start(self, training: Training) -> None:
        """Begin to train.

        Raises:
            HarnessError: a micro-batch's planes do not fit between forward and backward propagation.
        """
        planes = self.chunks * training.bits
        if planes > self.shape.replay_words:
            raise HarnessError(f"{planes} words of a micro-batch for a queue of {self.shape.replay_words}")
        bases = (ctypes.c_uint64 * len(self._bases))(*self._bases)
        self._call("glm_training", _words(TRAINING, training.values(self.chunks, self.micro_batches)), bases)
        self._call("glm_start")

    @property
    def busy(self) -> bool:
        """It trains, or a round is in flight."""
        return bool(self._call("glm_busy"))

    @property
    def now(self) -> int:
        """Clocks since it was made."""
        return int(self._call("glm_now"))

    def run(self, clocks: int, until_sent: bool = False) -> None:
        """Let `clocks` pass, or stop before, when a frame has left."""
        self._call("glm_run", ctypes.c_uint32(clocks), ctypes.c_uint32(until_sent))

    def receive(self, frame: bytes) -> None:
        """A frame, without its FCS, comes to the MAC."""
        self._call("glm_receive", frame, ctypes.c_uint32(len(frame)))

    def frames(self) -> list[tuple[int, bytes]]:
        """(clock of its last beat, bytes) of what was sent since the last call."""
        room, clock = (ctypes.c_uint8 * _ROOM)(), ctypes.c_uint64()
        sent = []
        while count := self._call("glm_take", room, ctypes.c_uint32(_ROOM), ctypes.byref(clock)):
            sent.append((clock.value, bytes(room[:count])))
        return sent

    @property
    def weights(self) -> NDArray[np.int64]:
        """Shape (engines, chunks * 64); while it is not busy."""
        found = np.zeros((self.shape.engines, self.chunks * CHUNK // ROW_LANES, ROW_LANES), np.int32)
        for engine, rows in enumerate(found):
            for index, row in enumerate(rows):
                self._call(
                    "glm_read_row", ctypes.c_uint32(engine), ctypes.c_uint32(index),
                    row.ctypes.data_as(ctypes.c_void_p),
                )  # fmt: skip
        return found.reshape(self.shape.engines, -1).astype(np.int64)

    @weights.setter
    def weights(self, values: NDArray[np.int64]) -> None:
        rows = np.ascontiguousarray(values, np.int32).reshape(self.shape.engines, -1, ROW_LANES)
        for engine in range(self.shape.engines):
            for index, row in enumerate(rows[engine]):
                self._call(
                    "glm_write_row", ctypes.c_uint32(engine), ctypes.c_uint32(index),
                    row.ctypes.data_as(ctypes.c_void_p),
                )  # fmt: skip

    def counts(self) -> Counts:
        """What happened."""
        words = (ctypes.c_uint32 * 16)()
        self._call("glm_counts", words)
        return Counts(**_COUNTS.of_words(list(words)))

    def events(self, name: str) -> list[int]:
        """Clocks of an event of worker_events_t since the last call."""
        found: list[int] = []
        room = (ctypes.c_uint64 * _ROOM)()
        while count := self._call("glm_events", ctypes.c_uint32(_EVENTS.index(name)), room, ctypes.c_uint32(_ROOM)):
            found += room[:count]
        return found

    @property
    def last_received(self) -> int:
        """Clock of the last frame's last beat from the MAC."""
        return int(self._call("glm_last_received"))
