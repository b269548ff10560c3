"""A rail that fails: the operations under way end with the same bits, further ones go over the other rails."""

from __future__ import annotations

import itertools
import random
import re
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collective_lab import together
from rail_ranks import LANES, NAMES, RANKS, SLOTS, rail_sets, values

from catchment.host import _machines
from catchment.host.collectives import CollectiveError, Communicator, RailPolicy, RailSet, Work
from catchment.host.collectives.rail_set import RailHealth, RailState
from catchment.sim.golden import rails as golden
from catchment.sim.golden.collectives import total
from catchment.sim.lab.shm_lab import ShmLab
from catchment.softswitch.admin import SwitchAdmin
from catchment.wire.generated.constants import DataType, DropReason

PATIENCE = 60.0


class Place:
    """Rails with a switch each, and what can happen to them."""

    def __init__(self, exits: ExitStack, rails: int = 2, *, tags: bool = False) -> None:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.sockets = [folder / str(rail) for rail in range(rails)]
        self.labs = [
            exits.enter_context(ShmLab(NAMES, lanes=LANES, slots=1024, tags=tags, extra=("--admin", str(socket))))
            for socket in self.sockets
        ]

    def link(self, rail: int, rank: int, *, up: bool) -> None:
        """Cut or join the link of one rank to a rail's switch, in both directions."""
        self.fault(rail, rank, "off" if up else "loss=1")

    def fault(self, rail: int, rank: int, fault: str) -> None:
        """What happens on a link, as `catchment fault` says it."""
        with SwitchAdmin(self.sockets[rail]) as admin:
            admin.set_faults(rank + 1, fault)


@pytest.fixture
def place() -> Iterator[Place]:
    with ExitStack() as exits:
        yield Place(exits)


@contextmanager
def all_reducing(
    place: Place, rng: random.Random, count: int, elements: int, **options: Any
) -> Iterator[Callable[[Callable[[RailSet, int], None]], list[RailSet]]]:
    """Ranks that all-reduce `count` arrays, two under way, with `event(rank, n)` between them; exact, or it fails.

    Now and then a rank is late with a call.
    """
    arrays = [[values(rng, rank, elements) for _ in range(count)] for rank in range(RANKS)]
    dawdling = [random.Random(rng.getrandbits(32)) for _ in range(RANKS)]
    expected = [total([arrays[rank][at] for rank in range(RANKS)], DataType.FP32, lanes=LANES, slots=SLOTS)
                for at in range(count)]  # fmt: skip
    with rail_sets(place.labs, **{"policy": RailPolicy.FIXED, "timeout": PATIENCE, **options}) as ranks:

        def run(event: Callable[[RailSet, int], None]) -> list[RailSet]:
            def body(rank: Communicator) -> None:
                assert isinstance(rank, RailSet)
                works: deque[Work] = deque()
                for at, array in enumerate(arrays[rank.rank]):
                    if dawdling[rank.rank].random() < 0.2:
                        time.sleep(dawdling[rank.rank].random() * 0.05)
                    works.append(rank.all_reduce(array))
                    if len(works) > 2:
                        works.popleft().wait()
                        event(rank, at)
                for work in works:
                    work.wait()

            assert together(ranks, body) == [None] * RANKS
            for at in range(count):
                for rank in range(RANKS):
                    assert np.array_equal(arrays[rank][at].view(np.uint32), expected[at].view(np.uint32)), (rank, at)
            return ranks

        yield run


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for what other threads do."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, what
        time.sleep(0.005)


@pytest.mark.sampled(4)
def test_a_switch_dies_in_the_middle_of_operations(place: Place, rng: random.Random) -> None:
    dies_after = rng.randrange(2, 10)

    def event(rank: RailSet, at: int) -> None:
        if rank.rank == 0 and at == dies_after:
            place.labs[1].kill_switch()

    with all_reducing(place, rng, 12, 200_001) as run:
        ranks = run(event)
        until(lambda: all(rank.rails()[1].health is RailHealth.DOWN for rank in ranks), "the rail is not down")
        states = [rank.rails()[1] for rank in ranks]
        # A machine that is slow to run a rail's switch may have had incidents before.
        assert all(s.carrier == "a" and s.incidents >= 1 and 0 <= s.last_incident < PATIENCE for s in states), states


@pytest.mark.slow
def test_a_switch_dies_under_frames_with_tags(rng: random.Random) -> None:
    """What goes over the other rail then has that stream's generation, and its key."""

    def event(rank: RailSet, at: int) -> None:
        if rank.rank == 0 and at == 3:
            place.labs[1].kill_switch()

    with ExitStack() as exits:
        place = Place(exits, tags=True)
        with all_reducing(place, rng, 12, 50_001, tags=True) as run:
            ranks = run(event)
            until(lambda: all(rank.rails()[1].health is RailHealth.DOWN for rank in ranks), "the rail is not down")
            assert all(rank.stats()["forged"] == 0 for rank in ranks)
        assert place.labs[0].client.counter("drops", DropReason.BAD_TAG)[0].packets == 0


def test_the_first_rail_dies_and_its_reports_go_on(place: Place, rng: random.Random) -> None:
    """The first rail carries the reports of what rails cost, and what is not split."""

    def event(rank: RailSet, at: int) -> None:
        if rank.rank == 1 and at == 3:
            place.labs[0].kill_switch()
        if at == 10:
            rank.broadcast(np.zeros(1000, np.int32), 2).wait()

    with all_reducing(place, rng, 40, 20_000, policy=RailPolicy.WATERFILL) as run:
        ranks = run(event)
        tables = [(rank.table_version, [state.cost for state in rank.rails()]) for rank in ranks]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0][0] >= 3


def test_the_link_of_one_rank_fails_and_returns(place: Place, rng: random.Random) -> None:
    lost, rail = rng.randrange(RANKS), rng.randrange(2)

    def event(rank: RailSet, at: int) -> None:
        if rank.rank == lost and at == 2:
            place.link(rail, lost, up=False)

    with all_reducing(place, rng, 8, 200_001) as run:
        ranks = run(event)
        until(lambda: all(r.rails()[rail].health is RailHealth.DOWN for r in ranks), "the rail is not down")
        before = [rank.rails()[rail].bytes for rank in ranks]
        place.link(rail, lost, up=True)

        def used() -> bool:
            assert together(ranks, lambda rank: rank.all_reduce(np.ones(20_001, np.float32)).wait()) == [None] * RANKS
            states = [rank.rails()[rail] for rank in ranks]
            return all(
                state.bytes > bytes_ and state.carrier == "ab"[rail]
                for state, bytes_ in zip(states, before, strict=True)
            )

        until(used, "the rail does not return")


def test_a_switch_comes_back_with_nothing_in_its_memory(place: Place, rng: random.Random) -> None:
    def event(rank: RailSet, at: int) -> None:
        if rank.rank == 0 and at == 2:
            place.labs[1].kill_switch()

    with all_reducing(place, rng, 6, 100_000) as run:
        ranks = run(event)
        place.labs[1].restart_switch()
        until(lambda: all(r.rails()[1].health is RailHealth.UP for r in ranks), "the rail does not return")
        arrays = [values(rng, rank, 100_000) for rank in range(RANKS)]
        expected = total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)
        assert together(ranks, lambda rank: rank.all_reduce(arrays[rank.rank]).wait()) == [None] * RANKS
        assert all(np.array_equal(array.view(np.uint32), expected.view(np.uint32)) for array in arrays)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("links", [False, True], ids=["a switch dies", "a link is cut"])
@pytest.mark.parametrize("rails", [2, 3])
def test_all_rails_but_one_fail_between_random_steps_under_loss(links: bool, rails: int, rng: random.Random) -> None:
    spared, speaker = rng.randrange(rails), rng.randrange(RANKS)
    fails = {rng.randrange(1, 12): (rail, rng.randrange(RANKS)) for rail in range(rails) if rail != spared}
    with ExitStack() as exits:
        place = Place(exits, rails)
        for rail, rank in itertools.product(range(rails), range(RANKS)):
            place.fault(rail, rank, "loss=0.01,dup=0.01")

        def event(rank: RailSet, at: int) -> None:
            if rank.rank == speaker and at in fails:
                rail, cut = fails[at]
                if links:
                    place.link(rail, cut, up=False)
                else:
                    place.labs[rail].kill_switch()

        run = exits.enter_context(all_reducing(place, rng, 15, 60_000))
        run(event)


def test_a_rank_that_has_not_called_agrees_about_a_rail_that_fails(place: Place, rng: random.Random) -> None:
    """Rank 2 calls only after all have agreed, itself among them; that one rail is absent is no reason to give up."""
    with rail_sets(place.labs, policy=RailPolicy.FIXED, timeout=PATIENCE, absent=0.001) as ranks:
        arrays = [values(rng, rank, 100_000) for rank in range(RANKS)]
        expected = total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)
        works = [rank.all_reduce(array) for rank, array in zip(ranks[:2], arrays, strict=False)]
        place.labs[1].kill_switch()
        until(lambda: all(rank.rails()[1].carrier == "a" for rank in ranks), "the ranks do not agree")
        assert not any(work.done() for work in works)
        works.append(ranks[2].all_reduce(arrays[2]))
        for work in works:
            work.wait()
        assert all(np.array_equal(array.view(np.uint32), expected.view(np.uint32)) for array in arrays)


def test_switches_of_all_rails_that_are_gone_are_named_long_before_the_timeout(place: Place) -> None:
    with rail_sets(place.labs, policy=RailPolicy.FIXED, timeout=3600.0, absent=0.5) as ranks:
        for lab in place.labs:
            lab.kill_switch()
        raised = together(ranks, lambda rank: rank.all_reduce(np.ones(100_000, np.float32)).wait(PATIENCE))
        assert [getattr(error, "kind", None) for error in raised] == ["unreachable"] * RANKS, raised
        assert all("no rail has a switch that answers: a, b" in str(error) for error in raised), raised
        with pytest.raises(CollectiveError, match="no rail has a switch that answers"):
            ranks[0].barrier().wait()


@pytest.mark.sampled(4)
def test_without_a_rail_that_joins_all_ranks_it_is_said_who_is_not_heard(place: Place) -> None:
    with rail_sets(place.labs, policy=RailPolicy.FIXED, timeout=PATIENCE) as ranks:
        assert together(ranks, lambda rank: rank.barrier().wait()) == [None] * RANKS
        place.link(0, 0, up=False)
        place.link(1, 1, up=False)
        raised = together(ranks, lambda rank: rank.all_reduce(np.ones(100_000, np.float32), timeout=3.0).wait())
    assert all(isinstance(error, CollectiveError) and error.kind == "missing" for error in raised), raised
    said = re.search(r"no rail joins all ranks: on rail a (.*) cannot be heard; on rail b (.*) cannot", str(raised[2]))
    assert said is not None and "0" in said[1] and "1" in said[2], raised[2]


def test_verdicts_equal_the_golden_model_round_for_round(rng: random.Random) -> None:
    for _ in range(200):
        rails, ranks, clock = rng.randint(1, 8), rng.randint(1, 8), rng.randrange(1 << 40)
        ours, expected = _machines.RailHealth(rails), golden.RailHealth(rails)
        full = (1 << rails) - 1
        for _ in range(60):
            clock += rng.choice((1, 50, 100, 350, 5_000))
            records = [
                golden.Record(
                    planned=rng.randrange(1 << 20),
                    clock_ms=clock + rng.randrange(5) if rank else clock,
                    suspected=rng.getrandbits(8) & full if rng.random() < 0.2 else 0,
                    settled=full if rng.random() < 0.8 else rng.getrandbits(8) & full,
                )
                for rank in range(ranks)
            ]
            said = ours.learn([(r.planned, r.clock_ms, r.suspected, r.settled) for r in records])
            assert said == expected.learn(records)
            assert ours.up == sum(1 << rail for rail in expected.up) != 0
            assert ours.up & ~said[1] == 0, "a rail in use is not asked"
            assert [ours.state(rail) for rail in range(rails)] == [expected.state(rail) for rail in range(rails)]
            for rail in range(rails):
                assert ours.carrier(rail) == (rail if rail in expected.up else min(expected.up))


def probation(records: Sequence[tuple[int, int]]) -> list[int]:
    """Milliseconds until a rail is used again, each time; `records`: when it fails and when it is there again."""
    health, waited = golden.RailHealth(2), []
    for fails, returns in records:
        health.learn([golden.Record(0, fails, 0b10, 0b01)])
        clock = returns
        while 1 not in health.up:
            health.learn([golden.Record(0, clock, 0, 0b11)])
            clock += 1
        waited.append(clock - 1 - returns)
    return waited


def test_a_rail_that_flaps_waits_longer_each_time_and_one_that_has_lasted_does_not() -> None:
    assert probation([(0, 10), (400, 500), (1200, 1300), (60_000, 60_100)]) == [300, 600, 1200, 300]


def test_a_rail_that_brings_sums_is_not_taken_for_dead(place: Place, rng: random.Random) -> None:
    """Rounds on rail b wait behind a tenth of a second of vectors, which bring their sums all the while."""
    late = rng.randrange(RANKS)
    for rank in range(RANKS):
        place.fault(1, rank, "rate=3000kbit,queue=64k")

    def body(rank: Communicator) -> None:
        work = rank.all_reduce(np.ones(80_000, np.float32))
        if rank.rank == late:
            time.sleep(0.1)  # so that the others, who wait for it on rail a, ask for a round
        rank.broadcast(np.zeros(8, np.int32), 0).wait()
        work.wait()

    def states() -> list[RailState]:
        return [rank.rails()[1] for rank in ranks]

    def silences() -> list[float]:
        """The time for which rail b had brought no sum when it was taken for dead, if it was."""
        until(lambda: all(state.health is RailHealth.UP for state in states()), "the rail does not return")
        before = [state.incidents for state in states()]
        assert together(ranks, body) == [None] * RANKS
        return [state.last_incident for state, count in zip(states(), before, strict=True) if state.incidents > count]

    with rail_sets(place.labs, policy=RailPolicy.FIXED) as ranks:
        # A machine that does not run the rail's switch for a while makes the rail silent, which is no mistake.
        for _ in range(3):
            found = silences()
            if not found or max(found) >= 0.05:
                return
    raise AssertionError(f"rail b had brought sums until {found} s before it was taken for dead")


MS = 10**6


def found_after(took: int, slept: Callable[[int], int], late: int = 0) -> int:
    """Milliseconds until a rail that never brings the round is late.

    The round took `took` ms over another rail, and some rank's threads are run `late` ms late; the thread that looks
    does so every 2 ms, but sleeps through `slept(n)` more before look n.
    """
    lateness, now = _machines.Lateness(), 0
    lateness.start(now, took * MS, late * MS, True)
    for look in itertools.count():
        over = slept(look)
        now += (2 + over) * MS
        lateness.excuse(over * MS)
        if lateness.late(now):
            return now // MS
    raise AssertionError


@pytest.mark.parametrize(("took", "patience"), [(1, 50), (12, 50), (50, 200), (5_000, 400)])
def test_a_dead_rail_is_found_by_a_rank_that_is_hardly_ever_run(took: int, patience: int, rng: random.Random) -> None:
    assert found_after(took, lambda look: 0) == patience
    # One long sleep tells nothing about the rail. So far the rank excuses it; a pause of all threads is no failure.
    assert found_after(took, lambda look: 3_000 if look == 1 else 0) <= 3_000 + 2 * patience
    pauses = [rng.randrange(100, 800) for _ in range(1_000)]
    assert found_after(took, pauses.__getitem__) <= 2 * patience + 800 + 2


@pytest.mark.parametrize(("late", "patience"), [(0, 50), (1, 50), (12, 50), (30, 120), (90, 360), (1_000, 400)])
def test_a_rail_has_longer_where_a_rank_s_threads_are_run_late(late: int, patience: int, rng: random.Random) -> None:
    """A switch beside busy loops is run as late as the ranks beside it; on a quiet machine nothing is waited for."""
    assert found_after(1, lambda look: 0, late) == patience
    told = [rng.randrange(late * 1000 + 1) for _ in range(RANKS)]
    told[rng.randrange(RANKS)] = late * 1000
    assert _machines.RailHealth(2).latest_of(told) == late * 1000, "of the rank that is run latest"


def test_how_late_a_rank_is_run_is_forgotten_after_two_seconds(rng: random.Random) -> None:
    own, now, late = _machines.OwnLateness(), 5_000, 0
    seen: list[tuple[int, int]] = []
    for _ in range(2_000):
        late = rng.choice((0, 0, 0, rng.randrange(200)))
        now += 10 + late
        own.on_woken(now * MS, late * MS)
        seen.append((now, late))
        least = max(late for at, late in seen if at > now - 1_000)
        most = max(late for at, late in seen if at > now - 2_000 - 210)
        assert least * MS <= own.worst <= most * MS
    own.on_woken((now + 3_000) * MS, MS)
    assert own.worst == MS


def test_a_rail_is_not_late_before_another_one_has_brought_the_round() -> None:
    lateness = _machines.Lateness()
    lateness.excuse(5 * MS)
    assert not lateness.late(1 << 60)
    lateness.start(0, 0, 0, True)
    lateness.excuse(40 * MS)
    assert not lateness.late(89 * MS)
    assert lateness.late(90 * MS)


def test_a_rail_that_is_still_being_joined_has_a_second() -> None:
    lateness = _machines.Lateness()
    lateness.start(5 * MS, 0, 0, False)
    assert not lateness.late(1_004 * MS)
    assert lateness.late(1_005 * MS)


def test_the_silence_of_a_rail_is_that_of_its_most_silent_rank(rng: random.Random) -> None:
    roll_call = _machines.RollCall(RANKS, 1)
    assert roll_call.all_heard_at() == 0
    heard = [0] * RANKS
    for at in range(1, 100):
        rank = rng.randrange(RANKS)
        roll_call.on_call(rank, 0, at * MS)
        heard[rank] = at
        assert roll_call.all_heard_at() == min(heard) * MS
    roll_call.on_call(RANKS, 0, 200 * MS)  # nobody
    assert roll_call.all_heard_at() == min(heard) * MS


def test_a_rail_that_brings_sums_is_alive_for_a_while(rng: random.Random) -> None:
    lateness = _machines.Lateness()
    lateness.heard(7 * MS)
    assert not lateness.late(1 << 60), "no other rail has brought the round"
    lateness.start(10 * MS, 0, 0, True)
    heard = 10
    while heard < 5_010:
        lateness.heard(heard * MS)
        assert not lateness.late((heard + 49) * MS)
        assert lateness.late((heard + 50) * MS)
        lateness.heard(rng.randrange(heard) * MS)  # an earlier one says no more
        assert lateness.late((heard + 50) * MS)
        heard += rng.randrange(1, 400)
    # Sums without any round for five seconds: something is wrong with it.
    lateness.heard(5_500 * MS)
    assert lateness.late(5_060 * MS)
