"""One commit record for the stores of several optimizer nodes: the step that all of them have, and can go back to.

Nodes commit to their own stores at their own pace, so after a crash these may be steps apart. In two phases they
agree: each takes a snapshot `step-N` in its store and leaves a vote in the group's folder, which all nodes see; the
node whose vote completes a step writes the record. Before that the previous record stands, and nobody drops a snapshot
of its step.

A node that was lost may come back while the others live. Then each of them begins again: it closes its store, withdraws
its votes for steps that the record does not have, and goes back to the record's step. Nobody can complete a later step
before all have done so, as that takes a vote of each, so all find the same record, in whatever order they come.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from catchment.host.durable_file import replace_file
from catchment.host.optimizer.store.errors import StoreError
from catchment.host.optimizer.store.store import Store
from catchment.lock_file import locked

_RECORD, _LOCK, _VOTES = "group.json", "lock", "votes"
_PREFIX = "step-"
_DIGITS = 20
"""A step has fewer."""
_PLANS: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Vote:
    """One node's word that its part of a step is on disk.

    Attributes:
        root: number of the node. store: identity of its store. generation: of the commit that made the snapshot.
        snapshot: its name. step: training passes that it has. plan: CRC-32 of the homes, `Home.plan`.
    """

    root: int
    store: str
    generation: int
    snapshot: str
    step: int
    plan: int


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A step that all nodes have; `votes`: one for each, by its number."""

    step: int
    votes: tuple[Vote, ...]


def snapshot_name(step: int) -> str:
    """What the snapshot of a step is called in every store."""
    return f"{_PREFIX}{step}"


def snapshot_step(name: str) -> int | None:
    """The opposite of `snapshot_name`; None for a name that somebody else gave."""
    number = name.removeprefix(_PREFIX)
    return int(number) if name.startswith(_PREFIX) and number.isdecimal() and len(number) < _DIGITS else None


class GroupFolder:
    """The folder of a group of stores; every process may have one of these for it."""

    def __init__(self, path: Path) -> None:
        """Nothing is read or made before it is needed."""
        self._path = path

    def record(self) -> GroupRecord | None:
        """The last step that all nodes have; None before the first.

        Raises:
            StoreError: kind ``corrupt``: there is a record, but not a whole one, or it says what no vote has written.
                ``device``: it cannot be read.
        """
        path = self._path / _RECORD
        with self._spoken():
            if not path.exists():
                return None
            return _record_of(path.read_bytes(), path)

    def vote(self, store: Store) -> None:
        """The store has committed a step and keeps a snapshot of it; with the last vote of a step the record names it.

        Raises:
            StoreError: kind ``device``: the folder cannot be written. ``closed``: the store was closed, so its node may
                have gone back meanwhile. ``corrupt``: the record, or a vote for this step. The previous record stands.
        """
        vote, home = _vote_of(store), store.geometry.table.home
        with self._spoken(), self._locked():
            store.check_open()
            votes = self._path / _VOTES
            votes.mkdir(exist_ok=True)
            replace_file(votes / f"{vote.step}.{vote.root}.json", [json.dumps(asdict(vote)).encode()])
            found = [self._vote(vote.step, root) for root in range(home.roots)]
            complete = [other for other in found if other is not None and other.plan == home.plan]
            record = self.record()
            if len(complete) == home.roots and (record is None or record.step < vote.step):
                replace_file(self._path / _RECORD, [_encoded(GroupRecord(vote.step, tuple(complete)))])
                self._forget(lambda step, _root: step < vote.step)

    def begin(self, store: Store) -> None:
        """Make sure that a node begins with the step that all others begin with; its votes for later ones are void.

        In a group without a record it votes for the state before the first step: nodes can go back to that as well.

        Raises:
            StoreError: kind ``mismatch``: says which steps.
        """
        record = self.record()
        step = 0 if record is None else record.step
        root = store.geometry.table.home.root
        if store.state.trained != step:
            raise StoreError(
                f"optimizer node {root} is at step {store.state.trained}, its group at {step}",
                kind="mismatch", path=str(self._path), hint="restore the group: `catchment proxy restore`",
            )  # fmt: skip
        if record is not None:
            _check_member(store, record, self._path)
        with self._spoken(), self._locked():
            self._forget(lambda later, other: later > step and other == root)
        if record is None:
            store.take_snapshot(snapshot_name(step))
            self.vote(store)

    def withdraw(self, root: int) -> GroupRecord | None:
        """A node begins again: its votes for steps that the record does not have are void; gives the record.

        Call it when nobody has the node's store open. None: not all nodes have begun yet; begin with a new store.

        Raises:
            StoreError: as `record`.
        """
        with self._spoken(), self._locked():
            record = self.record()
            agreed = -1 if record is None else record.step
            self._forget(lambda step, other: other == root and step > agreed)
        return record

    def go_back(self, store: Store, record: GroupRecord) -> None:
        """Bring one store to the step of the record that `withdraw` gave; its later snapshots are dropped.

        Raises:
            StoreError: kind ``mismatch``: not a store of this group, or it lacks the step.
        """
        _check_member(store, record, self._path)
        store.restore_snapshot(snapshot_name(record.step))
        for name in store.snapshots:
            if (snapshot_step(name) or 0) > record.step:
                store.drop_snapshot(name)

    def restore(self, stores: Sequence[Store]) -> GroupRecord:
        """Bring all stores of the group to the step of its record; interrupted, it can be done again.

        Later snapshots and votes are dropped, as what they belong to will run again.

        Raises:
            StoreError: kind ``missing``: there is no record yet. ``mismatch``: not the stores of this group, all of
                them and each once, or one lacks the step; nothing was changed.
        """
        record = self.record()
        if record is None:
            raise StoreError(
                "the group has no step that all its nodes have", kind="missing", path=str(self._path),
                hint="begin anew, with new stores and an empty folder",
            )  # fmt: skip
        roots = sorted(store.geometry.table.home.root for store in stores)
        if roots != list(range(len(record.votes))):
            raise StoreError(
                f"stores of the optimizer nodes {roots}, the group has {len(record.votes)}", kind="mismatch",
                path=str(self._path), hint="name the stores of all, each once",
            )  # fmt: skip
        for store in stores:
            _check_member(store, record, self._path)
        with self._spoken(), self._locked():
            self._forget(lambda step, _root: step > record.step)
            for store in stores:
                self.go_back(store, record)
        return record

    def _vote(self, step: int, root: int) -> Vote | None:
        path = self._path / _VOTES / f"{step}.{root}.json"
        if not path.exists():
            return None
        try:
            return _checked(Vote(**json.loads(path.read_bytes())), step, root)
        except (ValueError, TypeError, RecursionError):
            raise StoreError(
                "the vote is damaged",
                kind="corrupt",
                path=str(path),
                hint=f"remove it, and have node {root} begin again",
            ) from None

    def _forget(self, void: Callable[[int, int], bool]) -> None:
        """Remove the votes of which `void(step, root)` is true."""
        for path in (self._path / _VOTES).glob("*.json"):
            step, _, root = path.stem.partition(".")
            if step.isdecimal() and root.isdecimal() and void(int(step), int(root)):
                path.unlink()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._path.mkdir(parents=True, exist_ok=True)
        with locked(self._path / _LOCK):
            yield

    @contextmanager
    def _spoken(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"the group's folder cannot be used: {error.strerror}", kind="device", path=str(self._path),
                hint="all optimizer nodes must be able to read and write it",
            ) from error  # fmt: skip


def _vote_of(store: Store) -> Vote:
    """The vote for the state that the store has committed, of which it keeps a snapshot."""
    home, state = store.geometry.table.home, store.state
    return Vote(
        home.root, store.identity, store.generation, snapshot_name(state.trained), state.trained, home.plan
    )  # fmt: skip


def _check_member(store: Store, record: GroupRecord, path: Path) -> None:
    home = store.geometry.table.home
    vote = record.votes[home.root] if home.root < len(record.votes) else None
    what = f"the store of optimizer node {home.root}"
    if vote is None or (vote.store, vote.plan) != (store.identity, home.plan):
        raise StoreError(f"{what} is not of this group", kind="mismatch", path=str(path), hint="name the group's own")
    held = store.snapshots.get(vote.snapshot)
    if held is None or held.trained != record.step or store.generation < vote.generation:
        there = ", ".join(store.snapshots) or "none"
        raise StoreError(
            f"{what} has no snapshot of step {record.step}; it has: {there}", kind="mismatch", path=str(path),
            hint="it was put back or written to by somebody else; begin from an export",
        )  # fmt: skip


def _checked(vote: Vote, step: Any, root: int) -> Vote:
    """What node `root` may have said of `step`.

    Raises:
        ValueError: a field is of another type, outside its range, or does not go with the others.
    """
    numbers = (step, vote.step, vote.root, vote.generation, vote.plan)
    if any(type(number) is not int or number < 0 for number in numbers) or not 0 <= vote.plan < _PLANS:
        raise ValueError(f"{vote}: whole numbers from 0 on, a plan below 2**32")
    if (vote.step, vote.root, vote.snapshot) != (step, root, snapshot_name(step)):
        raise ValueError(f"{vote} is not of step {step} and node {root}")
    if not isinstance(vote.store, str) or not vote.store:
        raise ValueError(f"{vote} names no store")
    return vote


def _encoded(record: GroupRecord) -> bytes:
    body = json.dumps(asdict(record), separators=(",", ":"))
    return json.dumps({"crc32": zlib.crc32(body.encode()), "record": body}).encode()


def _record_of(raw: bytes, path: Path) -> GroupRecord:
    try:
        sealed = json.loads(raw)
        if zlib.crc32(sealed["record"].encode()) == sealed["crc32"]:
            facts = json.loads(sealed["record"])
            votes = [_checked(Vote(**vote), facts["step"], root) for root, vote in enumerate(facts["votes"])]
            if votes and len({vote.plan for vote in votes}) == 1:
                return GroupRecord(votes[0].step, tuple(votes))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise StoreError("the group's record is damaged", kind="corrupt", path=str(path), hint="restore it from a copy")
