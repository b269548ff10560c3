"""The settings of a stream, one direction of a job, that an endpoint needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from catchment.host.errors import EndpointError
from catchment.wire.generated.constants import (
    DEFAULT_LANES,
    KEY_FRAMES,
    MAX_PARAM_BYTES,
    MAX_WORKERS,
    SUPPORTED_LANES,
    TERM_BITS,
)

_MAX_SLOTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a job; every member of the job is given the same values.

    Attributes:
        gen: incarnation, 1..65535, unique in the switch and never used again.
        workers: how many workers the job has in all; fixes h = ceil(log2 workers) of the number format.
        slots: T, the entries the job has in the switch (a power of two); bounds what may be in flight.
        base_seq: the first sequence number.
        lanes: 32-bit lanes of a PA and FA frame, fixed by the build of the switch program.
        packed: each lane of a vector is two 16-bit integers, so that floats of any type take two bytes each; in a
            collective, where its scaling says so, too.
        param_bytes: largest payload of a PARAM frame in bytes.
        key: 32 hexadecimal digits, a secret of the stream's members and switches: every frame then ends with a tag
            under it, and what arrives without the right one is counted (reject ``tag``) and not looked at. Empty: no
            tags. All streams of an endpoint have one or none has.
        key_frames: sequence numbers that the key serves for. What would take more is refused (kind ``spent``): a frame
            that somebody has recorded compares as older than all that come up to there. A member under a controller
            asks for new keys when half of them are used.
        term_bits: of a stream of ranks under a controller: keys follow one another while it goes on, each serves for a
            term of 2^term_bits numbers, and `key` for the first two. 0: no other comes.

    Raises:
        EndpointError: kind ``argument``, for a value outside its range.
    """

    gen: int
    workers: int
    slots: int = 64
    base_seq: int = 0
    lanes: int = DEFAULT_LANES
    param_bytes: int = 1408
    packed: bool = False
    key: str = field(default="", repr=False)
    key_frames: int = KEY_FRAMES
    term_bits: int = 0

    def __post_init__(self) -> None:
        _check("gen", self.gen, 1, 0xFFFF)
        _check("workers", self.workers, 1, MAX_WORKERS)
        _check("slots", self.slots, 1, _MAX_SLOTS)
        _check("base_seq", self.base_seq, 0, 0xFFFF_FFFF)
        _check("key_frames", self.key_frames, 1, KEY_FRAMES)
        _check("term_bits", self.term_bits, 0, TERM_BITS)
        if self.term_bits and (self.base_seq or not self.key or 16 * self.slots > 1 << self.term_bits):
            raise EndpointError(
                f"Stream.term_bits is {self.term_bits} with {self.slots} slots and base_seq {self.base_seq}",
                kind="argument",
                hint="give a key, base_seq 0 and at most a sixteenth of a term in slots; or no term_bits",
            )
        _check("param_bytes", self.param_bytes, 1, MAX_PARAM_BYTES)
        if not isinstance(self.packed, bool):
            raise EndpointError(f"Stream.packed is {self.packed!r}", kind="argument", hint="give True or False")
        if not isinstance(self.key, str) or (self.key and not re.fullmatch("[0-9a-fA-F]{32}", self.key)):
            raise EndpointError("Stream.key is no key", kind="argument", hint="give 32 hexadecimal digits, or none")
        if self.slots & (self.slots - 1):
            raise EndpointError(f"Stream.slots is {self.slots}", kind="argument", hint="give a power of two")
        if self.lanes not in SUPPORTED_LANES:
            raise EndpointError(f"Stream.lanes is {self.lanes}", kind="argument", hint=f"give one of {SUPPORTED_LANES}")


def _check(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise EndpointError(f"Stream.{name} is {value!r}", kind="argument", hint=f"give an integer {low}..{high}")
