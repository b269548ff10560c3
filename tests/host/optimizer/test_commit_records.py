"""The commit record by itself: what was written comes back, and only as the same store's."""

from __future__ import annotations

import random

import numpy as np

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
