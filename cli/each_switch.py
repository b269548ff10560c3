"""What a verb does on each of several switches: one that fails keeps it from no other, and is named at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from catchment.controlplane.errors import ControlPlaneError

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[_Result]):
    """What came of it.

    Attributes:
        results: of the switches on which it succeeded, by their names.
        failures: of the others.
    """

    results: dict[str, _Result]
    failures: dict[str, ControlPlaneError]

    def complain(self) -> None:
        """Raise what failed, if anything did; call it once the results are printed.

        Raises:
            ControlPlaneError: the failure itself; of several, one with a line for each.
        """
        failures = list(self.failures.values())
        if len(failures) == 1:
            raise failures[0]
        if failures:
            lines = [f"{len(failures)} of {len(failures) + len(self.results)} switches failed", *map(str, failures)]
            raise ControlPlaneError("\n- ".join(lines))


def on_each(switches: Iterable[str], act: Callable[[str], _Result]) -> Outcomes[_Result]:
    """Call `act` with the name of each switch, in turn."""
    done: Outcomes[_Result] = Outcomes({}, {})
    for name in switches:
        try:
            done.results[name] = act(name)
        except ControlPlaneError as error:
            done.failures[name] = error
    return done
