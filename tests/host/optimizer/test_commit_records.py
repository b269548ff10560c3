"""The commit record by itself: what was written comes back, and only as the same store's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from out_of_core import create

from catchment.host.optimizer.store import Store, StoreError
from catchment.host.optimizer.store import commit as records
from catchment.host.optimizer.store.commit import Commit, LayerVersion, ModelState, decode, encode
from catchment.host.optimizer.store.geometry import DIGESTS, PAGE

ROOM = 4 * PAGE


def record(rng: random.Random) -> Commit:
    """A record of two layers on three devices, with a snapshot."""

    def state() -> ModelState:
        layers = tuple(
            LayerVersion(
                rng.randrange(3),
                np.array([[rng.getrandbits(32) for _ in range(DIGESTS)] for _ in range(3)], np.uint32),
                (rng.randrange(9), rng.randrange(9)),
                {"exponents": [rng.randrange(-9, 9)]},
            )
            for _ in range(2)
        )
        return ModelState(layers, rng.randrange(100), {"loss": rng.random()})

    return Commit(rng.getrandbits(40), state(), {"before": state()})


def facts(commit: Commit | None) -> object:
    """Everything in a record, in a form that can be compared."""
    assert commit is not None
    states = {"": commit.state, **commit.snapshots}
    return commit.generation, {
        name: (s.trained, dict(s.notes), [(v.plane, v.digests.tolist(), v.steps, v.notes) for v in s.layers])
        for name, s in states.items()
    }


def test_a_record_comes_back(rng: random.Random) -> None:
    commit = record(rng)
    assert facts(decode(encode(commit, ROOM, "a"), "a")) == facts(commit)


def test_a_record_of_another_store_is_none(rng: random.Random) -> None:
    """A device may hold an older store's record, whole and of a higher generation."""
    assert decode(encode(record(rng), ROOM, "a"), "b") is None


def test_a_record_that_is_cut_short_is_none(rng: random.Random) -> None:
    raw = encode(record(rng), ROOM, "a").rstrip(b"\0")
    for length in (*range(32), rng.randrange(len(raw)), len(raw) - 1):
        assert decode(raw[:length], "a") is None, length


def test_a_record_with_a_changed_byte_is_none(rng: random.Random) -> None:
    raw = encode(record(rng), ROOM, "a")
    length = len(raw.rstrip(b"\0"))
    for at in rng.sample(range(length), 64):
        changed = bytearray(raw)
        changed[at] ^= 1 << rng.randrange(8)
        assert decode(bytes(changed), "a") is None, at


def _first(said: dict[str, Any], at: int, value: object) -> None:
    """Change one of plane, digests, steps and notes of the first layer of the snapshot."""
    said["snapshots"]["before"]["layers"][0][at] = value


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a plane that is a text": lambda said: _first(said, 0, "1"),
    "a plane that is no whole number": lambda said: _first(said, 0, 1.5),
    "a plane below 0": lambda said: _first(said, 0, -1),
    "digests that are a number": lambda said: _first(said, 1, 3),
    "digests of half a device": lambda said: _first(said, 1, "00" * 8),
    "steps below 0": lambda said: _first(said, 2, [-1, 0]),
    "steps that are texts": lambda said: _first(said, 2, ["1", "2"]),
    "steps that are a number": lambda said: _first(said, 2, 3),
    "training passes that are a text": lambda said: said["state"].update(trained="9"),
    "training passes that are a bool": lambda said: said["state"].update(trained=True),
    "training passes below 0": lambda said: said["state"].update(trained=-9),
    "training passes that are NaN": lambda said: said["state"].update(trained=float("nan")),
    "notes that are a list": lambda said: said["state"].update(notes=[]),
    "no notes": lambda said: said["state"].pop("notes"),
    "snapshots that are a list": lambda said: said.update(snapshots=[]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_record_that_says_what_no_commit_says_is_none(
    rng: random.Random, damage: Callable[[dict[str, Any]], object]
) -> None:
    raw = encode(record(rng), ROOM, "a")
    said = json.loads(raw[records._BODY :].rstrip(b"\0"))
    assert decode(sealed(said), "a") is not None
    damage(said)
    assert decode(sealed(said), "a") is None


def test_a_record_that_is_nested_too_deeply_is_none() -> None:
    assert decode(sealed(None, b"[" * 100_000), "a") is None


def sealed(said: object, body: bytes = b"") -> bytes:
    """A record of store "a", whose checksum is right whatever it says."""
    body = body or json.dumps(said).encode()
    head = records._HEAD.pack(records._MAGIC, 7, len(body))
    return head + records._CRC.pack(records._seal("a", head, body)) + body


@pytest.mark.parametrize("where", ["state", "snapshot"])
@pytest.mark.parametrize("what", ["layers", "tensors", "devices"])
def test_a_record_of_another_model_is_refused(tmp_path: Path, where: str, what: str) -> None:
    with create([tmp_path / "a"]) as store:
        state = store.state
        first = state.layers[0]
        other = {
            "layers": replace(state, layers=state.layers[1:]),
            "tensors": replace(state, layers=(replace(first, steps=(*first.steps, 0)), *state.layers[1:])),
            "devices": replace(state, layers=(replace(first, digests=first.digests[:0]), *state.layers[1:])),
        }[what]
        snapshots = {"before": other} if where == "snapshot" else {}
        store._record(Commit(store.generation + 1, state if snapshots else other, snapshots))
    with pytest.raises(StoreError, match="the commit record is of another model: restore the device") as caught:
        Store.open([tmp_path / "a"])
    assert caught.value.kind == "corrupt"
