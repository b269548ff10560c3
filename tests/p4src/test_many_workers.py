"""The minimum over the workers of a job, however many of those that the program was built for it has."""

from __future__ import annotations

import random

import pytest
from embedded_target import EmbeddedTarget
from frame_builder import job_frame, pack_values
from scenarios import Build, Stream, base_tables
from targets import compare

from catchment.wire.generated.constants import MAX_WORKERS, Flag, Header, Mode, PacketType

LANES, SLOTS = 8, 16
GROUP = 8
"""Workers that the program looks at only where the job has one of them or of those behind."""
COUNTS = (1, 7, 8, 9, 16, 17, 25, 33, 41, 49, 57, 64)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", ["luwu", "p4sgd"])
def test_the_minimum_is_over_all_workers(program: str, rng: random.Random) -> None:
    """Workers speak in any order, several times, the last of them at last; then vectors meet the bound that follows.

    At the end one worker of each group of eight in turn is behind all others.
    """
    build = Build(LANES, SLOTS, MAX_WORKERS, 4, program)
    for count in COUNTS:
        ports = tuple(range(1, count + 1))
        target, model = EmbeddedTarget(build), build.model(lambda: 0)
        model.tables = base_tables((Stream(7, Mode.ALLREDUCE, 0, SLOTS, 0, ports, None),))

        def said(port: int, ack: int, seq: int) -> tuple[int, bytes]:
            kind = PacketType.PA if program == "p4sgd" or rng.random() < 0.5 else PacketType.HB
            lanes, payload = (LANES, pack_values([port] * LANES)) if kind == PacketType.PA else (0, b"")
            header = Header(type=kind, flags=Flag.ACKV, gen=7, wid=port - 1, lanes=lanes, seq=seq, ack=ack,
                            credit=ack + SLOTS, dtype=1)  # fmt: skip
            return port, job_frame(header, payload, port=port)

        speakers = [*ports[:-1], *rng.choices(ports[:-1] or ports, k=20)]
        rng.shuffle(speakers)
        frames = [said(port, rng.randrange(4), rng.randrange(8)) for port in (*speakers, *reversed(ports))]
        frames += [said(rng.choice(ports), rng.randrange(8), rng.randrange(40)) for _ in range(60)]
        for level, first in enumerate(range(0, count, GROUP)):
            late = rng.choice(ports[first : first + GROUP])
            ack = 8 + 4 * level
            frames += [said(port, ack + 2, ack + 2) for port in rng.sample(ports, count) if port != late]
            frames.append(said(late, ack + 1, ack + 1))
        compare(target, model, frames)
