"""Text that every machine has: the Python standard library's sources and Debian's licence texts, as bytes."""

from __future__ import annotations

import sysconfig
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from catchment.sim.lab.errors import LabError

LICENCES = Path("/usr/share/common-licenses")
_VALIDATION_SHARE = 20  # one file in this many


@dataclass(frozen=True, slots=True)
class Corpus:
    """Bytes for training and for validation, from different files, and how many files there were."""

    train: npt.NDArray[np.uint8]
    validation: npt.NDArray[np.uint8]
    files: int

    @property
    def digest(self) -> str:
        """Checksum of both, to tell whether two machines train on the same text."""
        return f"{zlib.crc32(self.validation.tobytes(), zlib.crc32(self.train.tobytes())):08x}"


def find_texts() -> list[Path]:
    """The files, in an order that does not depend on the file system."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    texts = sorted(stdlib.glob("*.py"), key=lambda path: path.name)
    if LICENCES.is_dir():
        texts += sorted((path for path in LICENCES.iterdir() if not path.is_symlink()), key=lambda path: path.name)
    return texts


def load_corpus(texts: list[Path] | None = None) -> Corpus:
    """Read the files; which ones validate follows from their names alone.

    Raises:
        LabError: there is no text, or all of it fell on one side.
    """
    split: tuple[list[bytes], list[bytes]] = ([], [])
    paths = find_texts() if texts is None else texts
    for path in paths:
        split[zlib.crc32(path.name.encode()) % _VALIDATION_SHARE == 0].append(path.read_bytes())
    train, validation = (np.frombuffer(b"".join(parts), dtype=np.uint8) for parts in split)
    if not len(train) or not len(validation):
        raise LabError(
            f"{len(paths)} files give {len(train)} bytes to train on and {len(validation)} to validate: too little; "
            "is Python's standard library installed as source files?"
        )
    return Corpus(train, validation, len(paths))


class Shard:
    """One worker's share of a corpus: sequences that no other worker sees within an epoch."""

    def __init__(self, corpus: Corpus, *, worker: int, workers: int, sequence: int, seed: int) -> None:
        """`sequence` is in bytes; the same `seed` on every worker."""
        self._train = _cut(corpus.train, sequence)
        self._validation = _cut(corpus.validation, sequence)
        self._order = np.random.default_rng(seed).permutation(len(self._train))
        self._worker = worker
        self._workers = workers
        if min(len(self._train), len(self._validation)) < workers:
            raise LabError(f"the text has too few sequences of {sequence} bytes for {workers} workers")

    def batch(self, step: int, size: int) -> torch.Tensor:
        """Training sequences of `step`: int64 tokens (size, sequence)."""
        return _rows(self._train, self._order, (step * self._workers + self._worker) * size, size)

    def validation(self, size: int) -> torch.Tensor:
        """This worker's validation sequences, the same in every pass: int64 tokens (size, sequence)."""
        return _rows(self._validation, np.arange(len(self._validation)), self._worker * size, size)


def _cut(text: npt.NDArray[np.uint8], sequence: int) -> npt.NDArray[np.uint8]:
    return text[: len(text) // sequence * sequence].reshape(-1, sequence)


def _rows(sequences: npt.NDArray[np.uint8], order: npt.NDArray[np.int64], first: int, size: int) -> torch.Tensor:
    chosen = order[(first + np.arange(size)) % len(order)]
    return torch.from_numpy(sequences[chosen].astype(np.int64))
