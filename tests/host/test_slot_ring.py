"""The slots' state machine against the golden switch on a network that loses, doubles, delays and forgets."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from faulty_lines import line_faults, some_line_faults
from slot_network import M32, TIMES, Network, Shape

from catchment.host import _machines
from catchment.wire.generated.constants import DropReason


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("slots", [1, 2, 8])
def test_every_sum_once_and_right(rng: random.Random, workers: int, slots: int) -> None:
    for _ in range(6):
        first = rng.choice([rng.randrange(M32), M32 - 20])
        restart = rng.choice([0, 0.01])
        faults = some_line_faults(rng)
        Network(rng, faults, shape=workers, rounds=40, slots=slots, first=first, restart=restart).run()


TREES: dict[str, Shape] = {"two racks": [2, 1], "depth 3": [[1, 2], [2]], "a rack and rows": [[3], [1], [2, 2]]}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", TREES.values(), ids=TREES)
@pytest.mark.parametrize("slots", [1, 4])
def test_every_sum_once_and_right_on_trees(rng: random.Random, shape: Shape, slots: int) -> None:
    for _ in range(4):
        first = rng.choice([rng.randrange(M32), M32 - 20])
        restart = rng.choice([0, 0.01])
        Network(rng, some_line_faults(rng), shape=shape, rounds=30, slots=slots, first=first, restart=restart).run()


FORGED: dict[str, Shape] = {"2": 2, "3": 3, "8": 8, "two racks": [2, 1], "alone in its rack": [[1, 2], [2]]}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("slots", [1, 2, 8])
def test_frames_far_ahead_stop_no_worker(rng: random.Random, shape: Shape, slots: int) -> None:
    """Another program sends them from the first worker's address, also before the switches know of any worker."""
    for restart in (0, 0.01):
        net = Network(
            rng, some_line_faults(rng), shape=shape, rounds=40, slots=slots, first=rng.randrange(M32),
            restart=restart, forge=0.3,
        )  # fmt: skip
        net.send_forged()
        net.run()
        before = net.drops[DropReason.BEYOND_WINDOW]
        net.send_forged()
        assert restart or net.drops[DropReason.BEYOND_WINDOW] == before + 1, "every worker was heard"


@pytest.mark.parametrize("shape", [3, [2, [1]]], ids=["one switch", "tree"])
@pytest.mark.parametrize("window", [1, 4])
def test_no_worker_is_beyond_its_bound(rng: random.Random, shape: Shape, window: int) -> None:
    for faults in (line_faults(), line_faults(loss=0.1), line_faults(duplicate=0.2, tail=10)):
        net = Network(rng, faults, shape=shape, rounds=60, slots=window, first=M32 - 30)
        net.run()
        assert net.drops[DropReason.BEYOND_WINDOW] == 0


def test_a_worker_lacks_its_oldest_missing_sum() -> None:
    slots = ring(3)
    for _ in range(3):
        slots.begin(0)
    slots.on_sum(1, 1)
    assert slots.lacks == 0
    slots.on_sum(0, 2)
    assert slots.lacks == 2
    slots.on_confirmation(0, 3)
    slots.begin(4)
    slots.on_sum(2, 5)
    assert slots.lacks == 3


@pytest.mark.parametrize("shape", [3, [2, [1]]], ids=["one switch", "tree"])
def test_all_rounds_are_confirmed_once_the_network_is_kind(rng: random.Random, shape: Shape) -> None:
    """Nothing stays open for ever: after the last sum the slots become free."""
    net = Network(rng, line_faults(loss=0.2, duplicate=0.2, tail=10), shape=shape, rounds=30, slots=4, first=0)
    net.run()
    net.set_faults(line_faults())
    while not all(m.ring.idle for m in net.members):
        net.step()
        assert net.now < 500_000, "a round is never confirmed"


def ring(window: int = 2, first: int = 0) -> object:
    return _machines.SlotRing(first, window, window, *TIMES, 1)


def test_a_confirmation_of_another_round_frees_nothing() -> None:
    """The counterexample to the printed Algorithm 3: a repeated confirmation must not end the next round."""
    slots = ring(1, M32 - 1)
    assert slots.begin(0) == M32 - 1
    assert slots.on_sum(M32 - 1, 1) == "taken"
    assert slots.on_confirmation(M32 - 1, 2) == "taken"
    assert slots.begin(3) == 0
    assert slots.on_confirmation(M32 - 1, 4) == "repeated"
    assert slots.on_sum(0, 5) == "taken"
    assert slots.on_confirmation(M32 - 1, 6) == "repeated"
    assert not slots.open
    assert slots.on_confirmation(0, 7) == "taken"
    assert slots.open


def test_what_was_never_begun_is_refused() -> None:
    slots = ring(4)
    slots.begin(0)
    assert slots.on_sum(1, 1) == "impossible"
    assert slots.on_confirmation(0, 1) == "impossible"
    assert slots.on_confirmation(M32 - 1, 1) == "repeated"
    assert slots.on_sum(1 << 31, 1) == "impossible"


def test_slots_free_in_any_order_but_are_used_in_turn() -> None:
    slots = ring(3)
    assert [slots.begin(0) for _ in range(3)] == [0, 1, 2]
    for seq in (2, 1):
        assert (slots.on_sum(seq, 1), slots.on_confirmation(seq, 2)) == ("taken", "taken")
    assert not slots.open
    assert (slots.on_sum(0, 3), slots.on_confirmation(0, 3)) == ("taken", "taken")
    assert slots.idle and slots.oldest == 3


def test_a_switch_that_forgot_is_told_again() -> None:
    """A worker that waits for a confirmation sends its vector again after a while: others may lack the sum."""
    slots = ring(1)
    slots.begin(0)
    slots.on_sum(0, 1)
    now, seen = 1, []
    while len(seen) < 5:
        now += 10
        retry = slots.take_retry(now)
        if retry is not None:
            seen.append(retry)
        assert now < 10_000
    assert seen[0] == (0, False, True)
    assert seen[-1] == (0, True, True)


def asked_for(slots: object, now: int, until: int) -> list[int]:
    """The rounds whose vectors or acknowledgements are sent again in this time."""
    seen = []
    for at in range(now, until, 5):
        while (retry := slots.take_retry(at)) is not None:  # type: ignore[attr-defined]
            seen.append(retry[0])
    return seen


def test_a_sum_does_not_wait_for_a_confirmation() -> None:
    """A worker that has all its sums may compute, and acknowledge nothing; others ask for lost sums still."""
    slots = ring(4)
    for _ in range(3):
        slots.begin(0)
    slots.on_sum(0, 1)  # round 0 is never confirmed
    assert asked_for(slots, 2, 20_000)[-20:].count(1) > 5
    slots.on_sum(1, 20_000)
    assert asked_for(slots, 20_001, 40_000)[-20:].count(2) > 5


def test_a_switch_that_becomes_slow_is_measured_anew() -> None:
    """The switch slows down from 0.2 ms to 40: after a few rounds nothing is sent twice any more."""
    slots = _machines.SlotRing(0, 1, 1, 5_000_000, 1_000_000, 50_000_000, 1)
    now, repeats = 0, []
    for round_trip in [200_000] * 50 + [40_000_000] * 60:
        seq = slots.begin(now)
        repeated = 0
        for event in (slots.on_sum, slots.on_confirmation):
            answer = now + round_trip
            while slots.deadline < answer:
                now = slots.deadline
                repeated += slots.take_retry(now) is not None
            now = answer
            assert event(seq, now) == "taken"
        repeats.append(repeated)
    assert repeats[:50] == [0] * 50
    assert sum(repeats[50:]) > 0, "nothing was late: this test tests nothing"
    assert repeats[-30:] == [0] * 30


def test_who_asks_in_vain_asks_ever_more_seldom() -> None:
    """The wait grows to eight times the limit, or workers that repeat could alone be more than a slow switch takes."""
    most = 50_000_000
    slots = _machines.SlotRing(0, 1, 1, 5_000_000, 1_000_000, most, 1)
    slots.begin(0)
    times = [0]
    while len(times) < 40:
        times.append(slots.deadline)
        slots.take_retry(times[-1])
    waits = [after - before for before, after in pairwise(times)]
    assert max(waits[:8]) <= 1.25 * most
    assert all(8 * most <= wait <= 10 * most for wait in waits[-8:])
