"""Lines: arrivals equal to the slow model's, queues that are full, frames that come again."""

from __future__ import annotations

import random

from test_faults import some_faults

from catchment.sim.golden.world import FaultModel, LineModel
from catchment.sim.world import FOREVER, BareLine, Faults, Line, World


def arrivals_of(world: World, seen: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    while world.step():
        pass
    return seen


def test_arrivals_are_those_of_the_slow_model(rng: random.Random) -> None:
    for case in range(40):
        seed, faults = rng.getrandbits(64), some_faults(rng)
        byte, latency = rng.choice([0, 1, 80, 8000]), rng.choice([0, 265_000])
        queue = rng.choice([None, 0, 300, 4000])
        world, seen = World(seed), list[tuple[int, bytes]]()
        spare = [Line(world, print) for _ in range(case % 3)]

        def deliver(frame: bytes, world: World = world, seen: list[tuple[int, bytes]] = seen) -> None:
            seen.append((world.now, frame))

        line = Line(world, deliver, byte=byte, latency=latency, queue_bytes=queue, faults=faults)
        model = LineModel(byte, latency, FaultModel(seed, len(spare), faults), queue)
        ready, expected = 0, []
        for number in range(30):
            ready += rng.choice([0, 0, 1, 100 * byte, 10**9])
            frame = number.to_bytes(2, "big") + rng.randbytes(rng.randrange(200))
            line.send(frame, ready=ready)
            expected += model.send(frame, ready)
        assert arrivals_of(world, seen) == sorted(expected, key=lambda one: one[0])
        assert line.counts["frames"] == len(model.sent)
        assert line.counts["dropped"] == 30 - len(model.sent)


def test_frames_follow_one_another_at_line_rate() -> None:
    """A thousand bytes at 100 Gb/s: 80 ns and the gap of 24 bytes' time, then the next."""
    world, at = World(1), []
    line = Line(world, lambda _: at.append(world.now), byte=80, latency=265_000)
    for _ in range(3):
        line.send(bytes(1000))
    world.run(FOREVER - 1)
    assert at == [265_000 + 80 * (1012 + 1024 * number) for number in range(3)]
    assert line.free_at == 3 * 80 * 1024


def test_a_full_queue_drops_and_counts() -> None:
    world, seen = World(1), []
    line = Line(world, seen.append, byte=80, queue_bytes=2500)
    sent = [line.send(bytes([number]) * 1000) for number in range(5)]
    world.run(10**9)
    assert sent == [True, True, False, False, False]
    assert [frame[0] for frame in seen] == [0, 1]
    assert (line.counts["dropped"], line.counts["most_waiting"]) == (3, 2024)
    assert line.send(b"later"), "the queue has drained"


def test_what_is_replayed_was_sent_before_on_this_line(rng: random.Random) -> None:
    world, seen = World(rng.getrandbits(64)), {0: list[bytes](), 1: list[bytes]()}
    lines = [Line(world, seen[index].append, faults=Faults(replay=0.5)) for index in range(2)]
    for number in range(800):
        for index, line in enumerate(lines):
            line.send(bytes([index]) + number.to_bytes(2, "big"))
    world.run(1)
    for index, line in enumerate(lines):
        assert {frame[0] for frame in seen[index]} == {index}
        assert len(seen[index]) == 800 + line.counts["replayed"] > 1000
        assert len(set(seen[index])) == 800


def test_faults_can_change_while_frames_fly() -> None:
    world, seen = World(1), []
    line = Line(world, seen.append, latency=1000)
    line.send(b"first")
    line.set_faults(Faults(loss=1))
    assert not line.send(b"second")
    line.set_faults(Faults())
    line.send(b"third")
    world.run(2000)
    assert seen == [b"first", b"third"]


def test_a_line_without_a_world_says_when_bytes_are_through() -> None:
    line = BareLine(byte=10, latency=5)
    assert [line.send(100, ready) for ready in (0, 0, 5000)] == [1005, 2005, 6005]
