"""The event kernel: order, determinism, times from now to seconds ahead."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.sim.golden.world import EventsModel
from catchment.sim.world import Faults, Line, World

BUCKET, TURN = 1 << 12, 1 << 28
TIMES = st.one_of(
    st.integers(0, 3),
    st.integers(0, 4 * BUCKET),
    st.integers(0, 3 * TURN),
    st.sampled_from([BUCKET - 1, BUCKET, TURN - 1, TURN, 7 * TURN, 10**15]),
)


@given(
    begin=st.lists(st.tuples(st.integers(0, 3), TIMES), max_size=30),
    later=st.lists(st.tuples(st.integers(0, 3), TIMES), max_size=60),
    stops=st.lists(TIMES, max_size=5),
)
def test_events_happen_in_the_order_of_time_source_and_number(
    begin: list[tuple[int, int]], later: list[tuple[int, int]], stops: list[int]
) -> None:
    """Sources 0 to 2 are lines, source 3 is the node; each event that happens makes one of the later ones."""
    world, model = World(1), EventsModel()
    happened: list[tuple[int, object]] = []
    expected: list[tuple[int, object]] = []
    left = [list(enumerate(later)), list(enumerate(later))]
    lines = [Line(world, lambda frame: on_event(int.from_bytes(frame, "big"))) for _ in range(3)]

    def schedule(source: int, delay: int, name: int) -> None:
        if source < 3:
            lines[source].send(name.to_bytes(4, "big"), ready=world.now + delay)
        else:
            world.after(delay, lambda: on_event(name))

    free = [0, 0, 0]

    def schedule_in_model(source: int, at: int, name: int) -> None:
        if source < 3:
            at = free[source] = max(at, free[source])  # a line keeps the order in which it was given frames
        model.schedule(source, at, name)

    def on_event(name: int) -> None:
        happened.append((world.now, name))
        if left[0]:
            index, (source, delay) = left[0].pop(0)
            schedule(source, delay, 1000 + index)

    for name, (source, delay) in enumerate(begin):
        schedule(source, delay, name)
        schedule_in_model(source, delay, name)
    for end in [*sorted(stops), 1 << 62]:
        world.run(end)
        while (event := model.step(end)) is not None:
            expected.append(event)
            if left[1]:
                index, (source, delay) = left[1].pop(0)
                schedule_in_model(source, event[0] + delay, 1000 + index)
        assert happened == expected
        assert world.now == end
    assert world.pending == 0


def test_nothing_happens_before_the_world_s_time() -> None:
    world = World(1)
    world.run(1000)
    with pytest.raises(RuntimeError, match="before the world's time"):
        world.at(999, print)
    assert world.pending == 0
    world.at(1000, print)
    assert world.pending == 1


def test_an_exception_in_an_event_comes_through_and_the_world_goes_on() -> None:
    world, seen = World(1), []

    def fails() -> None:
        raise KeyError("on purpose")

    world.at(5, fails)
    world.at(5, lambda: seen.append(world.now))
    with pytest.raises(KeyError, match="on purpose"):
        world.run(10)
    world.run(10)
    assert seen == [5]


def chatter(seed: int, first: int) -> list[tuple[int, int, bytes]]:
    """Three hosts in a ring that answer each frame; whoever begins, the run is that of the seed."""
    world, seen = World(seed), list[tuple[int, int, bytes]]()
    faults = Faults(loss=0.02, duplicate=0.05, reorder=0.2, jitter=3000, delay=50_000)

    def hears(host: int) -> Callable[[bytes], None]:
        def on_frame(frame: bytes) -> None:
            seen.append((world.now, host, frame))
            lines[host].send(bytes([frame[0] + 1 & 255]) + frame[1:])

        return on_frame

    lines = [Line(world, hears((host + 1) % 3), byte=80, latency=1000, faults=faults) for host in range(3)]
    for turn in range(3):
        host = (first + turn) % 3
        for number in range(20):
            lines[host].send(bytes([0, host, number]))
    world.run(10_000_000)
    return seen


def test_one_seed_is_one_run_whoever_is_asked_first(rng: random.Random) -> None:
    seed = rng.getrandbits(64)
    runs = [chatter(seed, first) for first in range(3)]
    assert len(runs[0]) > 500
    assert runs[0] == runs[1] == runs[2]
    assert chatter(seed + 1, 0) != runs[0]


def test_a_network_that_is_forgotten_is_freed() -> None:
    """Its lines and waiting events lead back to it."""

    class Network:
        def __init__(self) -> None:
            self.world = World(1)
            self.line = Line(self.world, self.on_frame, latency=10)
            self.world.at(5, lambda: self.line.send(b"frame"))
            self.line.send(b"frame")

        def on_frame(self, frame: bytes) -> None:
            raise AssertionError(frame)

    network = Network()
    watched = weakref.ref(network)
    del network
    gc.collect()
    assert watched() is None
