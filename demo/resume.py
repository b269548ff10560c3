"""Going on with a demo that was ended: from the optimizer node's store, and from what had been heard until then.

The store has the state after its last committed step, whole; workers keep nothing between steps. So the passes after
that step run again with the bits that they would have had. Of the passes before it the losses are in a journal; those
of a pass that was committed, but not yet reported when everything ended, are lost, and the report leaves it out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.host.optimizer.store import Store, StoreError
from catchment.host.optimizer.store.group_commit import GroupFolder
from catchment.sim.lab import events
from catchment.sim.lab.errors import LabError
from catchment.sim.training.options import Plan, TrainingOptions

FREE_TO_CHANGE = frozenset(
    {"resume", "trained", "network", "target", "loss", "reference", "timeout", "name", "output", "arena", "restart"}
)
"""Options that may differ from the run that was ended: no weight depends on them."""


def going_on(options: TrainingOptions) -> TrainingOptions:
    """The same options, with `trained` as the store has it.

    Raises:
        LabError: there is nothing to go on from, or it was another training.
    """
    if not options.out_of_core:
        raise LabError("--resume goes on from the store of a run with --out-of-core: give both")
    try:
        earlier = Plan.read(Plan(options, {}).path).options
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabError(f"{options.output} has no run to go on with ({error}): start one without --resume") from error
    now, then = options.to_json(), earlier.to_json()
    other = [f"{name} {then[name]}, not {now[name]}" for name in now if now[name] != then[name]]
    other = [text for text in other if text.split()[0] not in FREE_TO_CHANGE]
    if other:
        raise LabError(f"the run in {options.output} had {'; '.join(other)}: give the same, or start anew")
    try:
        return replace(options, trained=_restored(options))
    except StoreError as error:
        raise LabError(f"cannot go on: {error}") from error


def _restored(options: TrainingOptions) -> int:
    """Training steps that the stores have; several are brought to the step of their group's record."""
    with ExitStack() as exits:
        places = [options.store_places(root) for root in range(options.roots)]
        stores = [exits.enter_context(Store.open(each)) for each in places]
        if options.group_folder is None:
            return stores[0].state.trained
        return GroupFolder(options.group_folder).restore(stores).step


class Journal:
    """Events of a run that its report needs, a line each, in the output folder; a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        self._file = self._path.open("a", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def note(self, name: str, event: dict[str, Any]) -> None:
        """Keep it, if it is of a kind that counts."""
        if event["event"] in (events.PASS, events.SKIPPED):
            self._file.write(json.dumps([name, event]) + "\n")
            self._file.flush()

    def replay(self, first: int, hear: Callable[[str, dict[str, Any]], None]) -> None:
        """Pass on what was kept of the passes before number `first`, and forget the rest. Before it is entered.

        Whatever ends this, the file has what it had, or what is to be kept of it: no run would give the losses again.
        """
        kept = [(name, event) for name, event in self._read() if event["index"] < first]
        beside = self._path.with_name(f"{self._path.name}.new")
        beside.write_text("".join(json.dumps([name, event]) + "\n" for name, event in kept), "utf-8")
        beside.replace(self._path)
        for name, event in kept:
            hear(name, event)

    def _read(self) -> list[tuple[str, dict[str, Any]]]:
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        found = []
        for line in lines:
            try:
                name, event = json.loads(line)
            except ValueError:  # cut off in the middle of a line
                continue
            found.append((name, event))
        return found
