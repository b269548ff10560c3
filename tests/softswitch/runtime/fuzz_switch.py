"""Random and mutated frames through a program, every one accounted for. Run by test_fuzz.py, also under the sanitizers.

python fuzz_switch.py SEED FRAMES [sanitize] PROGRAM...     a PROGRAM is luwu, p4sgd, copies, loops, or a file
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from catchment.checkout import ROOT

sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from bench.aggregation import frame as worker_frame  # noqa: E402
from bench.switch_inprocess import set_up  # noqa: E402
from catchment.softswitch import native  # noqa: E402
from catchment.softswitch.build import build  # noqa: E402
from catchment.softswitch.inprocess import Switch  # noqa: E402

LANES, WORKERS, PORTS = 8, 4, 24
P4SRC = ROOT / "p4src"

Frames = list[tuple[int, bytes]]
"""(port, frame)."""


def _luwu(seed: int, *, sanitize: bool) -> tuple[Switch, Frames]:
    program = build(P4SRC / "luwu.p4", defines={"LANES": str(LANES), "SLOTS": "256"}, sanitize=sanitize)
    switch = Switch(program, seed=seed)
    set_up(switch, WORKERS)
    return switch, [(w + 1, worker_frame(LANES, w, seq)) for seq in range(64) for w in range(WORKERS)]


def _p4sgd(seed: int, *, sanitize: bool) -> tuple[Switch, Frames]:
    """Its tables are empty: what is under test is its parser, and that every frame is dropped with a reason."""
    program = build(P4SRC / "p4sgd.p4", defines={"LANES": str(LANES)}, sanitize=sanitize)
    return Switch(program, seed=seed), [
        (w + 1, worker_frame(LANES, w, seq)) for seq in range(16) for w in range(WORKERS)
    ]


def _copies(seed: int, *, sanitize: bool) -> tuple[Switch, Frames]:
    switch = Switch(build(Path(__file__).with_name("copies.p4"), sanitize=sanitize), seed=seed)
    for number in range(1, 8):
        switch.multicast(number, [(port, port + number) for port in range(number)])
        switch.clone_session(number, [(number, 0), (number + 1, 7)][: 1 + number % 2], 20 * (number % 3))
    dice = random.Random(seed)
    frames = []
    for what in range(256):
        head = bytes([what, dice.randrange(10), 0, dice.randrange(10), 0, dice.randrange(80), 0, 0])
        items = bytes([1, 2, 3, 4] * dice.randrange(6)) + bytes(4)
        frames.append((dice.randrange(PORTS), head + items + dice.randbytes(dice.randrange(100))))
    return switch, frames


def _loops(seed: int, *, sanitize: bool) -> tuple[Switch, Frames]:
    """Frames say how often the loops turn, many of them without end."""
    source = Path(__file__).with_name("loops.p4")
    switch = Switch(build(source, sanitize=sanitize), seed=seed, max_steps=2000)
    switch.multicast(1, [(1, 1), (2, 2), (3, 3)])
    switch.clone_session(1, [4, 5])
    switch.clone_session(2, [6])
    dice = random.Random(seed)
    frames = []
    for what in range(256):
        more = dice.choice((0, 1, 300, 0xFFFF))
        frames.append(
            (dice.randrange(PORTS), bytes([what, dice.choice((0, 9, 255))]) + more.to_bytes(2, "big") + bytes(4))
        )
    return switch, frames


def _file(source: Path, seed: int, *, sanitize: bool) -> tuple[Switch, Frames]:
    dice = random.Random(seed)
    switch = Switch(build(source, sanitize=sanitize), seed=seed)
    return switch, [(dice.randrange(PORTS), dice.randbytes(dice.randrange(300))) for _ in range(200)]


def main() -> None:
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    sanitize = "sanitize" in sys.argv[3:]
    known = {"luwu": _luwu, "p4sgd": _p4sgd, "copies": _copies, "loops": _loops}
    for name in (a for a in sys.argv[3:] if a != "sanitize"):
        if name in known:
            switch, frames = known[name](seed, sanitize=sanitize)
        else:
            switch, frames = _file(Path(name), seed, sanitize=sanitize)
        begin = time.monotonic()
        received, left, drops = native.runtime().fuzz(switch.dataplane, frames, count, PORTS, seed)
        assert received == count, (name, received)
        causes = ", ".join(f"{number} {cause}" for cause, number in drops.items() if number)
        took = time.monotonic() - begin
        print(f"{name}: seed {seed}, {received} frames in, {left} out, dropped: {causes or 'none'}; {took:.0f} s")


if __name__ == "__main__":
    main()
