"""Types of the optimizer node's native part (host/optimizer/native)."""

import enum
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

UNIT: int

class Lane(enum.Enum):
    """The queues of a device, highest priority first."""

    PARAMETER_READ = 0
    STATE_READ = 1
    STATE_WRITE = 2

@final
class Ticket:
    """A request in flight, which keeps its memory until it is settled, with or without the ticket.

    `wait` gives 0 or an errno.
    """

    def wait(self) -> int: ...
    @property
    def done(self) -> bool: ...
    @property
    def started(self) -> float: ...
    @property
    def ended(self) -> float: ...

@final
class Faults:
    """What goes wrong on purpose: from the `after`-th operation on; error 0 kills the process."""

    def __init__(self, *, on: str = "", after: int = -1, error: int = 0, torn: bool = False, log: str = "") -> None: ...
    @property
    def seen(self) -> int: ...

@final
class Device:
    """The I/O thread of one open file (of which it keeps a descriptor of its own)."""

    def __init__(
        self,
        descriptor: int,
        *,
        uring: bool,
        chunk: int,
        depth: int,
        rate: float,
        index: int,
        faults: Faults | None,
    ) -> None: ...
    def read(self, lane: Lane, offset: int, memory: npt.NDArray[np.uint8]) -> Ticket: ...
    def write(self, offset: int, memory: npt.NDArray[np.uint8]) -> Ticket: ...
    def sync(self) -> Ticket: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...

@final
class Updater:
    """Threads for updates and checksums, and the kernels of one instruction set."""

    def __init__(self, threads: int, kernels: str = "") -> None: ...
    @property
    def kernels(self) -> str: ...
    @property
    def threads(self) -> int: ...
    def update(
        self,
        *,
        parameters: npt.NDArray[np.uint8] | None,
        master: npt.NDArray[np.uint8],
        first: npt.NDArray[np.uint8],
        second: npt.NDArray[np.uint8] | None,
        bf16_moments: bool,
        gradient: npt.NDArray[np.uint8],
        shard_units: Sequence[int],
        offsets: Sequence[int],
        counts: Sequence[int],
        scalars: npt.NDArray[np.float32],
        summed: bool = True,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
    def digests(self, section: npt.NDArray[np.uint8], element_bytes: int, shard_units: Sequence[int]) -> list[int]: ...
    def squares(self, gradient: npt.NDArray[np.uint8], scale: float) -> float: ...

def crc32c(data: bytes, crc: int = 0) -> int: ...
