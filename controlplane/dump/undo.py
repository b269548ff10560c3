"""Writes that can be taken back: a switch that refuses something in the middle is as before then.

Of an entry that was deleted and comes back the direct counter starts at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

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
    """Writes changes to a switch, and takes all of them back when one is refused.

    Args:
        client: the switch.
        whole: take back; otherwise what came before, and what is not refused, stays.
    """

    def __init__(self, client: SwitchClient, *, whole: bool) -> None:
        self._client = client
        self._whole = whole
        self._done: list[Change] = []

    def write(self, changes: Iterable[Change]) -> None:
        """Make changes in their order.

        Raises:
            SwitchError: with each refused update; says whether the switch is as before. Any other exception has that as
                a note.
        """
        for part in _requests(changes):
            self._write(part)

    def _write(self, part: list[Change]) -> None:
        """Make the changes of one request: of those the switch makes all that it does not refuse."""
        try:
            self._client.write(*(change.update for change in part))
        except SwitchError as error:
            if not self._whole:
                raise
            refused = {failure.index for failure in error.failures}
            self._done += [change for index, change in enumerate(part) if index not in refused]
            raise SwitchError(f"{error}\n{self._take_back()}", code=error.code) from None
        except BaseException as error:
            self._done += part
            if self._whole:
                error.add_note(self._take_back())
            raise
        self._done += part

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
