"""Writes that can be taken back: a switch that refuses something in the middle is as before then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.client.entity import Entity, Update

_AT_ONCE = 256
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
            SwitchError: with each refused update; says whether the switch is as before.
        """
        new = list(changes)
        try:
            self._client.write(*(change.update for change in new))
        except SwitchError as error:
            if not self._whole:
                raise
            refused = {failure.update for failure in error.failures}
            self._done += [change for change in new if str(change.update) not in refused]
            raise SwitchError(f"{error}\n{self._take_back()}", code=error.code) from None
        except BaseException:
            self._done += new
            if self._whole:
                self._take_back()
            raise
        self._done += new

    def _take_back(self) -> str:
        """Take everything back, the last first; what came of it, in words."""
        stay: list[str] = []
        back = [change.back for change in reversed(self._done)]
        for start in range(0, len(back), _AT_ONCE):
            part = back[start : start + _AT_ONCE]
            try:
                self._client.write(*part)
            except SwitchError as error:
                unheard = [] if error.failures else [*map(str, part)]
                stay += unheard + [one.update for one in error.failures if one.code not in _AS_BEFORE]
        if not stay:
            return "the switch is as it was before: what had been written is taken back"
        more = f" and {len(stay) - _SHOWN} more" if len(stay) > _SHOWN else ""
        return f"the switch is not as it was before, this could not be taken back: {'; '.join(stay[:_SHOWN])}{more}"
