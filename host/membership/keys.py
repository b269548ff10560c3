"""Keys that follow one another: a member asks for the next ones of its communicators, and passes on what comes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable
from weakref import WeakSet

from catchment.host.transport.stream import Stream

_LOG = logging.getLogger("catchment.membership")
_AGAIN_SECONDS = 1.0


@runtime_checkable
class Keyed(Protocol):
    """A rank of a stream: `host.collectives.Communicator`."""

    @property
    def stream(self) -> Stream:
        """Its stream."""

    @property
    def key_due(self) -> int:
        """The term that all ranks have come to, once the key of the next one is due; 0 until then."""

    def take_key(self, term: int, key: str) -> bool:
        """Take the key of a term; False where it is not the next one's."""


class Keys:
    """The keys of a member's communicators, for as long as these live; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranks: WeakSet[Any] = WeakSet()
        self._asked: dict[int, tuple[int, float]] = {}
        self._failed = False

    def follow(self, rank: Keyed) -> None:
        """Ask for the keys of this communicator from now on, if its stream has any that follow one another."""
        if rank.stream.term_bits:
            with self._lock:
                self._ranks.add(rank)

    def due(self) -> list[tuple[int, int]]:
        """(Generation, term) of each stream that wants a key; those that were asked for lately are left out."""
        now = time.monotonic()
        wanted = [(rank.stream.gen, term) for rank in self._following() if (term := rank.key_due)]
        fresh = [
            (gen, term)
            for gen, term in wanted
            if self._asked.get(gen, (0, 0.0))[0] != term or now - self._asked[gen][1] >= _AGAIN_SECONDS
        ]
        self._asked.update((gen, (term, now)) for gen, term in fresh)
        return fresh

    def take(self, keys: Iterable[Any]) -> None:
        """Give what a notice has (TermKey of wire/controller.proto) to the communicators of those streams."""
        came = {key.gen: key for key in keys}
        for rank in self._following():
            if (key := came.get(rank.stream.gen)) is not None and rank.take_key(key.term, key.key):
                _LOG.info("generation %d has the key of term %d", key.gen, key.term)

    def refused(self, why: str) -> None:
        """Say once that no key can be asked for, until one was."""
        if not self._failed:
            _LOG.warning("no new key for the job's frames: %s; vectors go on until the present ones are spent", why)
        self._failed = True

    def asked(self) -> None:
        """The controller has heard."""
        self._failed = False

    def _following(self) -> list[Keyed]:
        with self._lock:
            return list(self._ranks)
