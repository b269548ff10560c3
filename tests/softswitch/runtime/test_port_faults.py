"""Faults of a port: what they are asked to be, how often they happen, and that a seed repeats them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from binomial import near

from catchment.softswitch.native import runtime

FRAMES = 20_000


def numbered(count: int) -> list[bytes]:
    return [number.to_bytes(4, "big") + bytes(60) for number in range(count)]


def numbers(frames: Sequence[bytes]) -> list[int]:
    return [int.from_bytes(frame[:4], "big") for frame in frames]


def run(direction: str, spec: str, frames: list[bytes], port: int = 1) -> tuple[list[int], dict[str, int]]:
    if direction == "in":
        out, counters = runtime().faults_in(spec, port, frames)
    else:
        out, counters, delivered = runtime().faults_out(spec, port, frames)
        assert delivered == len(out)
    return numbers(out), counters


@pytest.mark.parametrize("direction", ["in", "out"])
def test_frames_are_lost_and_doubled_as_often_as_asked(direction: str, seed: int) -> None:
    out, counters = run(direction, f"loss=0.1,dup=0.05,seed={seed}", numbered(FRAMES))
    copies = Counter(out)
    lost = FRAMES - len(copies)
    doubled = sum(count == 2 for count in copies.values())
    assert set(copies.values()) == {1, 2}
    assert (counters["seen"], counters["lost"], counters["duplicated"]) == (FRAMES, lost, doubled)
    assert near(lost, FRAMES, 0.1)
    assert near(doubled, FRAMES - lost, 0.05)
    assert out == sorted(out), "nothing was to be reordered"


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_reordered_frame_is_overtaken_by_one_to_three(direction: str, seed: int) -> None:
    out, counters = run(direction, f"reorder=0.02,seed={seed}", numbered(FRAMES))
    assert sorted(out) == list(range(FRAMES)), "nothing was to be lost"
    assert near(counters["reordered"], FRAMES, 0.02)
    overtaken = [place - number for place, number in enumerate(out) if place > number]
    assert 0.9 * counters["reordered"] <= len(overtaken) <= counters["reordered"]
    assert {1, 2, 3} <= set(overtaken)


def test_a_frame_that_skips_the_delay_overtakes_those_that_wait() -> None:
    out, counters = run("in", "reorder=0.3,delay=3ms,seed=4", numbered(60))
    assert sorted(out) == list(range(60))
    early = out[: counters["reordered"]]
    assert early == sorted(early)
    assert out[len(early) :] == sorted(out[len(early) :])
    assert counters["delayed"] == 60 - counters["reordered"]
    assert 5 < counters["reordered"] < 40


@pytest.mark.parametrize("direction", ["in", "out"])
def test_jitter_changes_the_order_and_loses_nothing(direction: str, seed: int) -> None:
    out, counters = run(direction, f"delay=2ms,jitter=2ms,seed={seed}", numbered(500))
    assert sorted(out) == list(range(500))
    assert out != sorted(out)
    assert counters["delayed"] == 500


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_seed_repeats_the_faults_and_ports_and_directions_differ(direction: str, seed: int) -> None:
    spec, frames = f"loss=0.05,dup=0.05,reorder=0.05,seed={seed}", numbered(3000)
    first = run(direction, spec, frames)
    assert run(direction, spec, frames) == first
    assert run(direction, spec, frames, port=2)[0] != first[0]
    assert run("out" if direction == "in" else "in", spec, frames)[0] != first[0]
    assert run(direction, spec.replace(str(seed), str(seed + 1)), frames)[0] != first[0]


def test_which_frames_are_lost_does_not_depend_on_the_other_faults(seed: int) -> None:
    frames = numbered(3000)
    lost = set(range(3000)) - set(run("in", f"loss=0.1,seed={seed}", frames)[0])
    also = set(range(3000)) - set(run("in", f"loss=0.1,dup=0.2,reorder=0.1,seed={seed}", frames)[0])
    assert lost == also


def test_one_direction_leaves_the_other_alone() -> None:
    frames = numbered(200)
    assert run("out", "in.loss=1,seed=1", frames)[0] == list(range(200))
    assert run("in", "in.loss=1,seed=1", frames)[0] == []


def test_what_the_wire_had_no_room_for_is_sent_later(rng: random.Random) -> None:
    for room in (0, 1, rng.randrange(2, 400)):
        out, _, delivered = runtime().faults_out("dup=0.2,seed=9", 1, numbered(500), room)
        assert delivered == len(out)
        assert list(dict.fromkeys(numbers(out))) == list(range(500)), f"room {room}"


def test_more_frames_than_can_be_held_are_lost_and_counted() -> None:
    out, counters = run("in", "delay=2s,seed=1", numbered(17_000))
    assert counters["overflow"] == 17_000 - len(out) > 0
    assert out == list(range(len(out)))


@pytest.mark.parametrize(
    ("spec", "read_as"),
    [
        ("off", "off"),
        ("loss=0.01,seed=7", "loss=0.01,seed=7"),
        ("dup=0.5%,seed=7", "dup=0.005,seed=7"),
        ("in.loss=0.01,out.delay=1ms,out.jitter=200us,seed=7", "in.loss=0.01,out.delay=1000us,out.jitter=200us,seed=7"),
        ("delay=0.5s,reorder=1,seed=18446744073709551615", "reorder=1,delay=500000us,seed=18446744073709551615"),
    ],
)
def test_specifications_read_back(spec: str, read_as: str) -> None:
    assert runtime().parse_faults(spec) == read_as
    assert runtime().parse_faults(read_as) == read_as


def test_a_seed_is_chosen_when_none_is_given() -> None:
    chosen = {runtime().parse_faults("loss=0.5") for _ in range(4)}
    assert len(chosen) > 1
    assert all("seed=" in one for one in chosen)


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("loss=1.5", "probability"),
        ("loss=-0.1", "probability"),
        ("loss=101%", "probability"),
        ("loss=nan", "probability"),
        ("loss=", "probability"),
        ("dup=x", "probability"),
        ("reorder=0.1ms", "probability"),
        ("delay=5", "time"),
        ("delay=-1ms", "time"),
        ("delay=11s", "time"),
        ("delay=1e400s", "time"),
        ("jitter=1ms", "larger than the delay"),
        ("delay=1ms,in.jitter=2ms", "larger than the delay"),
        ("loss=0.1,loss=0.2", "twice"),
        ("seed=-1,loss=0.1", "whole number"),
        ("seed=18446744073709551616", "whole number"),
        ("corrupt=0.1", "loss="),
        ("up.loss=0.1", "loss="),
        ("in.seed=1", "loss="),
        ("off,loss=0.1", "off"),
        ("", "loss="),
        (",", "loss="),
        ("loss", "probability"),
    ],
)
def test_a_wrong_specification_is_refused_with_its_reason(spec: str, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        runtime().parse_faults(spec)


def test_a_rate_passes_what_it_says_on_the_virtual_clock(rng: random.Random) -> None:
    """Frames of any length arrive faster than the link takes them, at odd times: bits per second to 1 in 10000."""
    for rate in (10_000_000, 123_456_789, 1_000_000_000):
        lengths = [rng.randint(60, 1514) for _ in range(4000)]
        arrivals = [0] * len(lengths)
        left = runtime().fault_times(f"rate={rate / 1000:g}kbit,queue=64m,seed=1", lengths, arrivals)
        assert left == sorted(left), "a link keeps the order"
        took = (left[-1] + 2_000_000) / 1e9  # the bucket was full: 2 ms of the rate
        assert math.isclose(8 * sum(lengths) / took, rate, rel_tol=1e-4)
        assert math.isclose(8e9 * sum(lengths[1001:]) / (left[-1] - left[1000]), rate, rel_tol=1e-4)


def test_a_slow_sender_is_not_slowed_down_but_by_its_own_frames(rng: random.Random) -> None:
    times = [0]
    for _ in range(500):
        times.append(times[-1] + rng.randint(3_000_000, 9_000_000))
    left = runtime().fault_times("rate=1gbit,seed=1", [1000] * len(times), times)
    assert left == times, "after a pause the bucket is full"


def test_what_finds_no_room_in_the_queue_is_dropped(rng: random.Random) -> None:
    length, room = 1000, rng.randint(3, 40)
    left = runtime().fault_times(f"rate=8mbit,queue={room * length},seed=1", [length] * 200, [10**9] * 200)
    kept = [number for number, time in enumerate(left) if time >= 0]
    assert kept == list(range(len(kept))), "the tail drops"
    assert len(kept) == room + 2, "two milliseconds of the rate pass at once: two frames"


def test_a_rate_and_a_delay_add_up() -> None:
    left = runtime().fault_times("rate=8mbit,queue=1m,delay=5ms,seed=1", [1000] * 10, [0] * 10)
    assert left == [max(0, number + 1 - 2) * 1_000_000 + 5_000_000 for number in range(10)]


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_rate_with_other_faults_loses_only_what_they_lose(direction: str, seed: int) -> None:
    spec = f"rate=2gbit,queue=64m,loss=0.1,dup=0.05,reorder=0.1,seed={seed}"
    out, counters = run(direction, spec, numbered(3000))
    assert counters["overflow"] == 0
    assert len(out) == 3000 - counters["lost"] + counters["duplicated"]
    assert out != sorted(out)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("rate=5", "'rate=5': is not a rate"), ("rate=0mbit", "is not a rate"), ("rate=401gbit", "is not a rate"),
        ("rate=1mbit,queue=0", "is not a size"), ("rate=1mbit,queue=2g", "is not a size"),
        ("queue=10k", "give a rate, too"), ("in.queue=10k,out.rate=1mbit", "give a rate, too"),
    ],
)  # fmt: skip
def test_rates_that_cannot_be_are_explained(spec: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        runtime().parse_faults(spec)


def test_a_rate_is_told_back_as_it_is() -> None:
    assert runtime().parse_faults("rate=400mbit,seed=0") == "rate=400000kbit,queue=262144,seed=0"
    again = "out.rate=1000000kbit,out.queue=262144,seed=0"
    assert runtime().parse_faults(again) == again
