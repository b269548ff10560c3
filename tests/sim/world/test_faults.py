"""Faults of a line: equal to the slow model, independent of who asks when, as frequent as asked."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from binomial import near

from catchment.sim.golden import world as golden
from catchment.sim.world import Burst, Faults, FaultStream, WorldError

FRAMES = 20_000


def some_faults(rng: random.Random) -> Faults:
    def probability() -> float:
        return rng.choice([0.0, 0.0, 0.01, 0.3, 1.0, rng.random()])

    return Faults(
        loss=min(probability(), 0.9), damage=probability(), duplicate=probability(), reorder=probability(),
        replay=probability(), burst=Burst(probability(), probability(), probability()),
        delay=rng.choice([0, 1, 1000, 10**9]), jitter=rng.choice([0, 7, 10**6]),
    )  # fmt: skip


def drawn(seed: int, line: int, faults: Faults, frames: int) -> list[golden.Fate]:
    stream, out = FaultStream(seed, line), []
    for _ in range(frames):
        fate = stream.next(faults)
        delays = [
            (copy.hold(faults.delay) if copy.reordered else 0) + copy.jitter(faults.jitter) for copy in fate.copies
        ]
        out.append(golden.Fate(fate.damaged, tuple(delays), fate.replays))
        assert fate.lost == (not delays)
    return out


def test_the_slow_model_draws_philox(rng: random.Random) -> None:
    """Equal to numpy's, which counts one up before each block."""
    for _ in range(50):
        key, stream, part = (rng.getrandbits(64) for _ in range(3))
        number = rng.randrange(1 << 63)
        words = [np.array(numbers, np.uint64) for numbers in ((key, stream), (number, part, 0, 0))]
        theirs = np.random.Philox(key=words[0], counter=words[1]).random_raw(4)
        assert golden.philox(key, stream, number + 1, part) == theirs.tolist()


def test_fates_are_those_of_the_slow_model(rng: random.Random) -> None:
    for _ in range(30):
        seed, line, faults = rng.getrandbits(64), rng.getrandbits(32), some_faults(rng)
        model = golden.FaultModel(seed, line, faults)
        assert drawn(seed, line, faults, 40) == [model.fate(number) for number in range(40)], faults


def test_a_fate_depends_on_seed_line_and_number_alone(rng: random.Random) -> None:
    seed, faults = rng.getrandbits(64), Faults(loss=0.2, duplicate=0.2, reorder=0.3, burst=Burst(0.1, 0.3), jitter=99)
    alone = [drawn(seed, line, faults, 300) for line in range(3)]
    streams = [FaultStream(seed, line) for line in range(3)]
    seen: list[list[bool]] = [[], [], []]
    while (unfinished := [line for line in range(3) if len(seen[line]) < 300]) != []:
        line = rng.choice(unfinished)
        seen[line].append(streams[line].next(faults).lost)
    assert seen == [[not fate.delays for fate in fates] for fates in alone]
    assert len({tuple(map(tuple, ([f.delays for f in fates] for fates in [one]))) for one in alone}) == 3
    assert drawn(seed + 1, 0, faults, 300) != alone[0]


def test_one_fault_does_not_move_another(rng: random.Random) -> None:
    seed = rng.getrandbits(64)
    lost = [not fate.delays for fate in drawn(seed, 1, Faults(loss=0.3), 500)]
    also = drawn(seed, 1, Faults(loss=0.3, damage=0.5, duplicate=0.5, reorder=0.5, replay=0.5, jitter=9), 500)
    assert [not fate.delays for fate in also] == lost


def test_faults_happen_as_often_as_asked(rng: random.Random) -> None:
    faults = Faults(loss=0.1, damage=0.05, duplicate=0.2, reorder=0.3, replay=0.4, delay=1000)
    fates = drawn(rng.getrandbits(64), 0, faults, FRAMES)
    arrived = [fate for fate in fates if fate.delays]
    copies = [delay for fate in arrived for delay in fate.delays]
    assert near(FRAMES - len(arrived), FRAMES, 0.1)
    assert near(sum(fate.damaged for fate in arrived), len(arrived), 0.05)
    assert near(len(copies) - len(arrived), len(arrived), 0.2)
    assert near(sum(delay > 0 for delay in copies), len(copies), 0.3 * 1000 / 1001)
    assert near(sum(fate.replays for fate in fates), FRAMES, 0.4)
    assert set(copies) <= set(range(1001)) and max(copies) > 900


def test_bursts_are_as_long_and_as_frequent_as_asked(rng: random.Random) -> None:
    """A bad spell has 1 / leave frames on average: between spells there are 1 / enter."""
    fates = drawn(rng.getrandbits(64), 0, Faults(burst=Burst(enter=0.05, leave=0.25)), FRAMES)
    spells = [len(list(group)) for lost, group in itertools.groupby(not fate.delays for fate in fates) if lost]
    assert 3.5 < sum(spells) / len(spells) < 4.5
    assert 1 / 30 < len(spells) / FRAMES < 1 / 20
    assert max(spells) > 10


def test_targeted_losses_take_the_frames_that_were_named() -> None:
    stream, kinds = FaultStream(1, 1), [1, 2, 1, 1, 2, 2, 1, 2]
    stream.lose(kind=1, skip=1, count=2)
    stream.lose(kind=2, skip=2)
    lost = [index for index, kind in enumerate(kinds) if stream.next(Faults(), kind).lost]
    assert lost == [2, 3, 5]
    stream.lose(skip=3)
    assert [stream.next(Faults(), 7).lost for _ in range(5)] == [False, False, False, True, False]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"loss": 2}, "loss of 2"),
        ({"damage": -0.1}, "damage"),
        ({"duplicate": math.nan}, "duplicate"),
        ({"delay": -1}, "delay of -1 ps"),
        ({"jitter": -5}, "jitter"),
    ],
)
def test_what_no_line_can_do_is_refused(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(WorldError, match=said):
        Faults(**wrong)  # type: ignore[arg-type]
    with pytest.raises(WorldError, match=r"burst\.leave"):
        Burst(leave=1.5)
