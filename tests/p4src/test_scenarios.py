"""The random traffic reaches what it is meant to reach; otherwise two targets would agree about nothing."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from bmv2_target import fence_frames, with_fence
from scenarios import Build, Traffic, base_tables, random_tables

from catchment.sim.golden.switch_frames import packet_type
from catchment.sim.golden.switch_model import SwitchModel
from catchment.wire.generated.constants import DropReason, Mode, PacketType


def run(rng: random.Random, frames: int) -> tuple[SwitchModel, Counter[tuple[int, int]]]:
    """A model after `frames` frames and (type in, type out) -> count."""
    build = Build()
    model = SwitchModel(build.lanes, build.slots, build.max_workers, build.jobs, dice=lambda: 0)
    model.tables = random_tables(rng)
    traffic = Traffic(rng, build.lanes)
    seen: Counter[tuple[int, int]] = Counter()
    for _ in range(frames):
        port, frame = traffic.next()
        for _, out in model.inject(port, frame):
            seen[(packet_type(frame), packet_type(out))] += 1
    return model, seen


def test_every_drop_reason_is_reached(rng: random.Random) -> None:
    """But that of tags, which a build without them has not; test_tags.py reaches it."""
    reached: set[DropReason] = set()
    wanted = set(DropReason) - {DropReason.NONE, DropReason.BAD_TAG}
    for _ in range(100):  # every second run or so has no fault that strikes on the way out
        reached |= {r for r, count in run(rng, 1500)[0].drops.items() if count}
        if reached == wanted:
            break
    assert reached == wanted


def test_every_answer_is_reached() -> None:
    model = SwitchModel(8, 16, 8, 4)
    model.tables = base_tables()
    # Receivers must see our port for `packet_type` to name what leaves.
    for key, receiver in model.tables.receivers.items():
        model.tables.receivers[key] = type(receiver)(receiver.dst_mac, receiver.dst_ip, 51836, 0, 0)
    traffic = Traffic(random.Random(5), 8)
    seen: Counter[tuple[Mode | None, int]] = Counter()
    for _ in range(6000):
        port, frame = traffic.next()
        for out_port, out in model.inject(port, frame):
            kind = packet_type(out)
            row = model.tables.jobs.get((int.from_bytes(out[44:46], "big"), out_port)) if kind else None
            seen[(row.mode if row else None, kind)] += 1
    expected = {
        (Mode.REDUCE, PacketType.FA),
        (Mode.REDUCE, PacketType.MH),
        (Mode.BCAST, PacketType.PARAM),
        (Mode.BCAST, PacketType.MH),
        (Mode.ALLREDUCE, PacketType.FA),
        (Mode.ALLREDUCE, PacketType.MH),
        (Mode.LEAF, PacketType.PA),
        (Mode.LEAF, PacketType.HB),
        (Mode.LEAF, PacketType.PARAM),
        (Mode.LEAF, PacketType.FA),
        (Mode.LEAF, PacketType.MH),
        (None, 0),
    }
    assert expected <= {key for key, count in seen.items() if count >= 3}, seen


@pytest.mark.parametrize("strangers", [False, True])
def test_the_fence_of_bmv2_is_answered_whoever_may_send(rng: random.Random, strangers: bool) -> None:
    build = Build()
    model = build.model(dice=lambda: 0)
    tables = random_tables(rng)
    tables.strangers = strangers
    model.tables = with_fence(tables)
    for port, frame in fence_frames():
        assert [out for out, _ in model.inject(port, frame)] == [port]
