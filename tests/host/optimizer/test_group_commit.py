"""The record of a group of stores: a step that all have, whatever was killed when."""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from catchment.host.layers import Home, Homes, LayerSpec, LayerTable, TrainingError
from catchment.host.optimizer import Adam, NodeOptions
from catchment.host.optimizer.store import Geometry, Precision, Store, StoreError
from catchment.host.optimizer.store.group_commit import GroupFolder, snapshot_name, snapshot_step
from catchment.host.optimizer.streaming import Clip, StreamingNode, StreamingOptions
from catchment.sim.lab.memory_switch import MemorySwitch

TABLE = LayerTable((LayerSpec.of(0, "a", [("a.w", (30,)), ("a.b", (20,))]), LayerSpec.of(1, "b", [("b.w", (9, 5))])))
ROOTS = 3
HOMES = Homes.spread(TABLE, ROOTS)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    with ExitStack() as exits:
        yield [exits.enter_context(_store(tmp_path, root)) for root in range(ROOTS)]


def _store(folder: Path, root: int) -> Store:
    table = HOMES.part(root)
    geometry = Geometry(table, 1, Adam().kind, Precision.BF16)
    return Store.create([folder / f"{root}.store"], geometry, lambda layer: torch.ones(table[layer].numel))


def _commit(folder: GroupFolder, store: Store, step: int, *, voted: bool = True) -> None:
    store.commit(step, snapshot=snapshot_name(step))
    if voted:
        folder.vote(store)


def test_a_store_keeps_its_home(stores: list[Store], tmp_path: Path) -> None:
    stores[1].close()
    with Store.open([tmp_path / "1.store"]) as again:
        assert again.geometry.table == HOMES.part(1)
        assert again.geometry.table.home == Home(1, ROOTS, HOMES.plan)


def test_the_record_names_a_step_when_the_last_vote_is_there(stores: list[Store], tmp_path: Path) -> None:
    folder = GroupFolder(tmp_path / "group")
    assert folder.record() is None
    for order in itertools.permutations(range(ROOTS)):
        record = folder.record()
        before = 0 if record is None else record.step
        for number, root in enumerate(order):
            _commit(folder, stores[root], before + 5)
            record = folder.record()
            assert (0 if record is None else record.step) == (before + 5 if number == ROOTS - 1 else before)
        assert record is not None
        assert [vote.root for vote in record.votes] == list(range(ROOTS))
        assert [vote.store for vote in record.votes] == [store.identity for store in stores]


def test_all_go_back_to_the_record_from_wherever_they_were(
    stores: list[Store], tmp_path: Path, rng: random.Random
) -> None:
    folder = GroupFolder(tmp_path / "group")
    at = [0] * ROOTS
    recorded = 0
    for turn in range(1000):
        if turn >= 40 and recorded:
            break
        root = rng.randrange(ROOTS)
        if at[root] > min(at) + 1:
            continue
        at[root] += 1
        voted = rng.random() < 0.8  # else it is killed between its snapshot and its vote
        _commit(folder, stores[root], at[root], voted=voted)
        record = folder.record()
        recorded = 0 if record is None else record.step
        if not voted and recorded:
            shuffled = rng.sample(stores, ROOTS)
            assert folder.restore(shuffled).step == recorded
            assert [store.state.trained for store in stores] == [recorded] * ROOTS
            for store in stores:
                assert max(snapshot_step(name) or 0 for name in store.snapshots) == recorded
                folder.begin(store)
            at = [recorded] * ROOTS
        assert recorded <= min(at)
    assert recorded > 0


def test_votes_of_a_run_that_is_over_do_not_complete_a_step(stores: list[Store], tmp_path: Path) -> None:
    folder = GroupFolder(tmp_path / "group")
    for store in stores:
        _commit(folder, store, 1)
    _commit(folder, stores[0], 2)
    folder.restore(stores)
    for store in stores[1:]:
        _commit(folder, store, 2)
    record = folder.record()
    assert record is not None
    assert record.step == 1, "node 0 has not trained step 2 since"


def test_a_node_that_begins_again_goes_back_alone_and_its_later_votes_are_void(
    stores: list[Store], tmp_path: Path
) -> None:
    folder = GroupFolder(tmp_path / "group")
    for store in stores:
        folder.begin(store)
    record = folder.record()
    assert record is not None
    assert record.step == 0, "before the first step there is one to go back to as well"
    for store in stores:
        _commit(folder, store, 3)
    for store in stores[:2]:
        _commit(folder, store, 6)
    stores[1].close()
    record = folder.withdraw(1)
    assert record is not None
    assert record.step == 3
    _commit(folder, stores[2], 6)
    assert folder.record() == record, "the vote for step 6 was withdrawn"
    with Store.open([tmp_path / "1.store"]) as again:
        assert again.state.trained == 6
        folder.go_back(again, record)
        assert again.state.trained == 3
        assert list(again.snapshots) == [snapshot_name(0), snapshot_name(3)]
        folder.begin(again)
        _commit(folder, again, 6)
    last = folder.record()
    assert last is not None
    assert last.step == 6


def test_a_late_vote_of_a_store_that_was_closed_does_not_count(stores: list[Store], tmp_path: Path) -> None:
    folder = GroupFolder(tmp_path / "group")
    for store in stores:
        _commit(folder, store, 1)
    for store in stores[1:]:
        _commit(folder, store, 2)
    _commit(folder, stores[0], 2, voted=False)
    stores[0].close()
    assert folder.withdraw(0) is not None
    with pytest.raises(StoreError, match="the store was closed"):
        folder.vote(stores[0])
    record = folder.record()
    assert record is not None
    assert record.step == 1


def test_without_a_record_a_node_withdraws_its_vote_for_the_beginning(stores: list[Store], tmp_path: Path) -> None:
    folder = GroupFolder(tmp_path / "group")
    folder.begin(stores[0])
    folder.begin(stores[1])
    stores[1].close()
    assert folder.withdraw(1) is None
    folder.begin(stores[2])
    assert folder.record() is None, "store 1 will be a new one"
    with _anew(tmp_path) as new:
        folder.begin(new)
        record = folder.record()
        assert record is not None
        assert record.votes[1].store == new.identity
    with _anew(tmp_path) as other, pytest.raises(StoreError, match="store of optimizer node 1 is not of this group"):
        folder.go_back(other, record)


def _anew(folder: Path) -> Store:
    geometry = Geometry(HOMES.part(1), 1, Adam().kind, Precision.BF16)
    return Store.create(
        [folder / "1.store"], geometry, lambda layer: torch.ones(HOMES.part(1)[layer].numel), overwrite=True
    )


def test_mixed_steps_are_refused(stores: list[Store], tmp_path: Path) -> None:
    folder = GroupFolder(tmp_path / "group")
    for store in stores:
        _commit(folder, store, 4)
    _commit(folder, stores[2], 5)
    port = MemorySwitch(1).root()
    options, streaming = NodeOptions(1), StreamingOptions(group=tmp_path / "group")
    StreamingNode(port, stores[0], options, streaming)
    with pytest.raises(StoreError, match=r"optimizer node 2 is at step 5, its group at 4.*restore the group"):
        StreamingNode(port, stores[2], options, streaming)
    stores[1].drop_snapshot(snapshot_name(4))
    with pytest.raises(StoreError, match=r"optimizer node 1 has no snapshot of step 4; it has: none"):
        folder.restore(stores)
    assert [store.state.trained for store in stores] == [4, 4, 5], "nothing was changed"


def test_wrong_groups_are_named(stores: list[Store], tmp_path: Path) -> None:
    folder = GroupFolder(tmp_path / "group")
    with pytest.raises(StoreError, match="no step that all its nodes have"):
        folder.restore(stores)
    for store in stores:
        _commit(folder, store, 1)
    with pytest.raises(StoreError, match=r"stores of the optimizer nodes \[0, 1\], the group has 3"):
        folder.restore(stores[:2])
    with pytest.raises(StoreError, match=r"stores of the optimizer nodes \[0, 1, 1\]"):
        folder.restore([*stores[:2], stores[1]])
    (tmp_path / "other").mkdir()
    with _store(tmp_path / "other", 1) as strange:
        strange.commit(1, snapshot=snapshot_name(1))
        with pytest.raises(StoreError, match="the store of optimizer node 1 is not of this group"):
            folder.restore([stores[0], strange, stores[2]])
    path = tmp_path / "group" / "group.json"
    sealed = json.loads(path.read_text())
    path.write_text(json.dumps({**sealed, "record": sealed["record"].replace('"step":1', '"step":7')}))
    with pytest.raises(StoreError, match="the group's record is damaged"):
        folder.record()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="the group's folder cannot be used"):
        GroupFolder(tmp_path / "file").vote(stores[0])


def _sealed(record: object) -> str:
    body = json.dumps(record)
    return json.dumps({"crc32": zlib.crc32(body.encode()), "record": body})


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a step that is a text": lambda said: {**said, "step": "4"},
    "a step that is a bool": lambda said: {**said, "step": True},
    "a step that is no whole number": lambda said: {**said, "step": 4.0},
    "a step below 0": lambda said: {**said, "step": -4},
    "a step that nobody voted for": lambda said: {**said, "step": 5},
    "no votes": lambda said: {**said, "votes": []},
    "votes that are none": lambda said: {**said, "votes": 3},
    "a vote that is none": lambda said: {**said, "votes": [3, *said["votes"][1:]]},
    "votes in another order": lambda said: {**said, "votes": said["votes"][::-1]},
    "a vote of another group": lambda said: _with_vote(said, plan=said["votes"][0]["plan"] ^ 1),
    "a plan beyond 32 bits": lambda said: {**said, "votes": [{**vote, "plan": 1 << 32} for vote in said["votes"]]},
    "a generation that is a text": lambda said: _with_vote(said, generation="x"),
    "a generation below 0": lambda said: _with_vote(said, generation=-1),
    "a generation that is NaN": lambda said: _with_vote(said, generation=float("nan")),
    "a store without a name": lambda said: _with_vote(said, store=""),
    "a store that is a number": lambda said: _with_vote(said, store=3),
    "another snapshot": lambda said: _with_vote(said, snapshot="step-3"),
    "a field too many": lambda said: _with_vote(said, more=1),
    "a list": lambda said: [said],
}


def _with_vote(said: dict[str, Any], **changes: object) -> object:
    """The record with another vote of node 0."""
    return {**said, "votes": [{**said["votes"][0], **changes}, *said["votes"][1:]]}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_record_that_no_vote_has_written_is_damaged_whatever_its_checksum_says(
    stores: list[Store], tmp_path: Path, damage: Callable[[dict[str, Any]], object]
) -> None:
    folder, path = GroupFolder(tmp_path / "group"), tmp_path / "group" / "group.json"
    for store in stores:
        _commit(folder, store, 4)
    whole = folder.record()
    said = json.loads(json.loads(path.read_text())["record"])
    path.write_text(_sealed(said))
    assert folder.record() == whole
    path.write_text(_sealed(damage(said)))
    for call in (folder.record, lambda: folder.restore(stores), lambda: folder.withdraw(0)):
        with pytest.raises(
            StoreError, match=r"group\.json: the group's record is damaged: restore it from a copy"
        ) as told:
            call()
        assert told.value.kind == "corrupt"


def test_what_is_no_record_at_all_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    for text in ("", "3", "[]", "[" * 100_000, _sealed("x"), '{"crc32": 0}', _sealed([])):
        path.write_text(text)
        with pytest.raises(StoreError, match=r"group\.json: the group's record is damaged"):
            GroupFolder(tmp_path).record()


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", '{"root": 0}', "[" * 100_000, "\xff", "null"])
def test_a_damaged_vote_is_named(stores: list[Store], tmp_path: Path, text: str) -> None:
    folder, votes = GroupFolder(tmp_path / "group"), tmp_path / "group" / "votes"
    _commit(folder, stores[0], 4)
    (votes / "4.1.json").write_text(text, "latin-1")
    with pytest.raises(StoreError, match=r"4\.1\.json: the vote is damaged: remove it, and have node 1") as told:
        _commit(folder, stores[2], 4)
    assert told.value.kind == "corrupt"
    assert folder.record() is None
    (votes / "4.1.json").unlink()
    for store in stores[1:]:
        _commit(folder, store, 4)
    assert folder.record() is not None


def test_files_of_others_among_the_votes_are_left_alone(stores: list[Store], tmp_path: Path) -> None:
    folder, votes = GroupFolder(tmp_path / "group"), tmp_path / "group" / "votes"
    votes.mkdir(parents=True)
    strange = {votes / name for name in ("note.json", "a.b.json", "1.2.3.json", "-1.0.json", ".json")}
    for path in strange:
        path.write_text("")
    for store in stores:
        _commit(folder, store, 4)
    folder.withdraw(0)
    assert strange <= set(votes.iterdir())


def test_a_snapshot_of_too_many_digits_is_of_no_step() -> None:
    assert snapshot_step(snapshot_name(12)) == 12
    assert snapshot_step("step-" + "9" * 5000) is None


def test_clipping_by_the_norm_is_refused(stores: list[Store]) -> None:
    with pytest.raises(TrainingError, match="clipping by the global norm with 3 optimizer nodes"):
        StreamingNode(MemorySwitch(1).root(), stores[0], NodeOptions(1), StreamingOptions(clip=Clip(1.0)))
