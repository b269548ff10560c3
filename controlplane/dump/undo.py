"""Writes that can be taken back: a switch that refuses something in the middle is as before then.

Of an entry that was deleted and comes back the direct counter starts at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Self

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.client.entity import Entity, Update
from catchment.controlplane.client.requests import UPDATES

_AS_BEFORE = ("NOT_FOUND", "ALREADY_EXISTS")
"""What the switch says to the taking back of what had not come so far."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Change:
    """An update, and the one that takes it back."""

    update: Update
    back: Update


def inserted(entities: Iterable[Entity]) -> list[Change]:
    """Entities that the switch does not have."""
    return [Change(+one, -one) for one in entities]


def modified(pairs: Iterable[tuple[Entity, Entity]]) -> list[Change]:
    """Entities as they are to be, each with what it is."""
    return [Change(~new, ~old) for new, old in pairs]


def deleted(entities: Iterable[Entity]) -> list[Change]:
    """Entities that the switch has."""
    return [Change(-one, +one) for one in entities]


class Writer:
    """Writes changes to a switch, and takes all of them back where its block does not come to its end.

    Args:
        client: the switch.
        whole: take back; otherwise what came before, and what is not refused, stays.

    Raises:
        SwitchError: with each refused update; says whether the switch is as before, once something was to be written.
            Any other exception has that as a note.
    """

    def __init__(self, client: SwitchClient, *, whole: bool) -> None:
        self._client = client
        self._whole = whole
        self._begun = False
        self._done: list[Change] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or not self._whole or not self._begun:
            return
        if isinstance(error, SwitchError):
            raise SwitchError(f"{error}\n{self._take_back()}", code=error.code) from None
        error.add_note(self._take_back())

    def write(self, changes: Iterable[Change]) -> None:
        """Make changes in their order.

        Raises:
            SwitchError: with each refused update.
        """
        for part in _requests(changes):
            self._write(part)

    def _write(self, part: list[Change]) -> None:
        """Make the changes of one request: of those the switch makes all that it does not refuse."""
        self._begun = True
        before = len(self._done)
        self._done += part  # so far as anybody knows whom a signal ends before the answer is noted
        try:
            self._client.write(*(change.update for change in part))
        except SwitchError as error:
            refused = {failure.index for failure in error.failures}
            self._done[before:] = [change for index, change in enumerate(part) if index not in refused]
            raise

    def _take_back(self) -> str:
        """Take everything back, the last first; what came of it, in words. A switch that is silent is not asked on."""
        stay: list[str] = []
        parts = list(_requests(reversed(self._done)))
        while parts:
            part = [change.back for change in parts.pop(0)]
            try:
                self._client.write(*part)
            except KeyboardInterrupt as again:
                again.add_note("the switch is not as it was before: the taking back was cut short")
                raise
            except SwitchError as error:
                stay += [one.update for one in error.failures if one.code not in _AS_BEFORE]
                if not error.failures:
                    stay += map(str, part)
                if error.is_silence:
                    stay += [str(change.back) for rest in parts for change in rest]
                    break
        if not stay:
            return "the switch is as it was before: what had been written is taken back"
        more = f" and {len(stay) - _SHOWN} more" if len(stay) > _SHOWN else ""
        return f"the switch is not as it was before, this could not be taken back: {'; '.join(stay[:_SHOWN])}{more}"


def _requests(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Changes, as many at once as one request has: after one that is refused the client sends no further ones."""
    remaining = iter(changes)
    while part := list(islice(remaining, UPDATES)):
        yield part
