"""Snapshots of a group of proxies on disk: a part of each, then one record that names the step (COARSE, IV-A).

In the folder, which all proxies see, proxy 0 writes `step-8/proxy-0`: a line of JSON with the CRC-32 of what follows,
then its values. Whoever finds that all parts of a step are there, of one plan and one digest, replaces `record.json`.
Before that the previous record stands, with its parts; after it, parts of earlier steps are removed. So whoever is
killed when, the record's step is there whole.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np

from catchment.host.durable_file import replace_file
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.storage import Bytes
from catchment.lock_file import locked

_RECORD, _LOCK, _PREFIX = "record.json", "lock", "step-"
_DIGITS = 20
"""A step has fewer."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a part says of itself: `crc32` is of all values, which proxies have alike."""

    step: int
    plan: int
    sizes: tuple[int, ...]
    crc32: int


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """The last step that all proxies have on disk; they have the same values, of which this is the CRC-32."""

    step: int
    proxies: int
    plan: int
    crc32: int


_Said = TypeVar("_Said", Part, SnapshotRecord)


class SnapshotFolder:
    """The folder of a group; every proxy has one of these for it."""

    def __init__(self, path: Path) -> None:
        """Nothing is read or made before it is needed."""
        self._path = path

    def record(self) -> SnapshotRecord | None:
        """The last step that all have; None before the first.

        Raises:
            ProxyError: there is a record, but not a whole one, or the folder cannot be read.
        """
        path = self._path / _RECORD
        with self._spoken():
            if not path.exists():
                return None
            try:
                sealed = json.loads(path.read_text())
                if zlib.crc32(sealed["record"].encode()) == sealed["crc32"]:
                    return _checked(SnapshotRecord(**json.loads(sealed["record"])))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                pass
        raise ProxyError(f"{path}: the record is damaged: restore it from a copy, or begin anew in an empty folder")

    def save(self, proxy: int, part: Part, blocks: Iterable[memoryview], proxies: int) -> None:
        """Write one proxy's part for good; with the last one of the step the record names it.

        Raises:
            ProxyError: the folder cannot be written, or the proxies' values differ. The previous record stands.
        """
        path = self._of(part.step, proxy)
        with self._spoken():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, chain([json.dumps(asdict(part)).encode() + b"\n"], blocks))
            with locked(self._path / _LOCK):
                there = [other for other in range(proxies) if self._of(part.step, other).exists()]
                for other in there:
                    if _head(self._of(part.step, other)) != part:
                        raise ProxyError(
                            f"proxies {other} and {proxy} have different values of step {part.step}: no record is "
                            "written; begin again from the last one"
                        )
                if len(there) == proxies:
                    body = json.dumps(asdict(SnapshotRecord(part.step, proxies, part.plan, part.crc32)))
                    sealed = {"crc32": zlib.crc32(body.encode()), "record": body}
                    replace_file(self._path / _RECORD, [json.dumps(sealed).encode()])
                    for folder in self._steps():
                        if _step(folder) < part.step:
                            shutil.rmtree(folder)

    def load(self, proxy: int, proxies: int, plan: int) -> tuple[Part, list[Bytes]] | None:
        """What the record has of one proxy; None before the first record.

        The proxy's own parts of later steps are removed, as these steps will run again.

        Raises:
            ProxyError: another group's or another model's snapshot; a part that is gone, damaged, or of another step.
        """
        record = self.record()
        with self._spoken():
            for folder in self._steps():
                if record is None or _step(folder) > record.step:
                    (folder / f"proxy-{proxy}").unlink(missing_ok=True)
            if record is None:
                return None
            if (record.proxies, record.plan) != (proxies, plan):
                raise ProxyError(
                    f"{self._path} has step {record.step} of {record.proxies} proxies{_other(record.plan, plan)}; this "
                    f"group has {proxies}: give every group a folder of its own"
                )
            path = self._of(record.step, proxy)
            if not path.exists():
                raise ProxyError(f"{path}: the part of the record's step is gone: put a copy of another proxy's there")
            part = _head(path)
            body = path.read_bytes().partition(b"\n")[2]
        if part is not None and part.step != record.step:
            raise ProxyError(f"{path} is of step {part.step}, the record of step {record.step}: steps do not mix")
        if (
            part is None
            or (part.plan, part.crc32) != (record.plan, record.crc32)
            or (sum(part.sizes), zlib.crc32(body)) != (len(body), part.crc32)
        ):
            raise ProxyError(f"{path} is damaged: put a copy of another proxy's part of this step there")
        ends = np.cumsum((0, *part.sizes))
        data = np.frombuffer(body, np.uint8)
        return part, [data[ends[at] : ends[at + 1]] for at in range(len(part.sizes))]

    def _of(self, step: int, proxy: int) -> Path:
        return self._path / f"{_PREFIX}{step}" / f"proxy-{proxy}"

    def _steps(self) -> list[Path]:
        return [folder for folder in self._path.glob(f"{_PREFIX}*") if _step(folder) >= 0]

    @contextmanager
    def _spoken(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ProxyError(
                f"snapshots in {self._path}: {error.strerror}: all proxies must be able to read and write it"
            ) from error


def _step(folder: Path) -> int:
    number = folder.name.removeprefix(_PREFIX)
    return int(number) if number.isdecimal() and len(number) < _DIGITS else -1


def _other(there: int, here: int) -> str:
    return "" if there == here else ", of another table or rule"


def _head(path: Path) -> Part | None:
    """What a part says of itself; None: it is damaged."""
    with path.open("rb") as file:
        try:
            facts = json.loads(file.readline())
            return _checked(Part(**{**facts, "sizes": tuple(facts["sizes"])}))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


def _checked(said: _Said) -> _Said:
    """A part's or a record's own facts.

    Raises:
        ValueError: one is no whole number from 0 on.
    """
    for value in astuple(said):
        if any(type(number) is not int or number < 0 for number in (value if isinstance(value, tuple) else (value,))):
            raise ValueError(f"{said}: whole numbers from 0 on")
    return said
