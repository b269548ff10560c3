"""Shares features out: workers take ranges of chunks, a worker's engines take its chunks in turn."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.host.given_numbers import is_whole, keep_whole
from catchment.host.glm.errors import GlmError
from catchment.wire.generated.glm_numbers import BANKS, CHUNK, ENGINES_MAX, WORKERS_MAX


@dataclass(frozen=True, slots=True)
class Shares:
    """The partition of the features over workers and engines.

    Worker w has chunks w * per_worker and up; chunk c of a worker is in slot c // engines of engine c % engines.
    All workers and engines go through as many slots; those beyond the features hold zeros.

    Args:
        features: of a sample, the constant one included.
        workers: 1 to 32.
        engines: of a worker, 1 to 8.

    Raises:
        GlmError: out of range.
    """

    features: int
    workers: int = 1
    engines: int = 1

    def __post_init__(self) -> None:
        if not is_whole(self.features, 1):
            raise GlmError(f"{self.features!r} features", "give samples with at least one")
        if not is_whole(self.workers, 1, WORKERS_MAX):
            raise GlmError(f"{self.workers!r} workers", f"a training has 1 to {WORKERS_MAX}")
        if not is_whole(self.engines, 1, ENGINES_MAX):
            raise GlmError(f"{self.engines!r} engines", f"a worker has 1 to {ENGINES_MAX}")
        keep_whole(self, "features", "workers", "engines")

    @property
    def worker_chunks(self) -> int:
        """Chunks of a worker."""
        return -(-self.features // (CHUNK * self.workers))

    @property
    def engine_chunks(self) -> int:
        """Slots of an engine."""
        return -(-self.worker_chunks // self.engines)

    def of_worker(self, wid: int) -> range:
        """The features of a worker; none for workers that there are too few features for."""
        width = self.worker_chunks * CHUNK
        return range(min(wid * width, self.features), min((wid + 1) * width, self.features))


def micro_batches(samples: int) -> int:
    """How many micro-batches hold so many samples; the last is filled up with zeros."""
    return -(-samples // BANKS)
