"""Random and mutated frames through luwu.p4, every one accounted for. Run by test_fuzz.py, also under the sanitizers.

python fuzz_switch.py SEED FRAMES [sanitize]
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from bench.aggregation import GEN  # noqa: E402
from bench.aggregation import frame as worker_frame  # noqa: E402
from bench.switch_inprocess import set_up  # noqa: E402
from softswitch.build import build  # noqa: E402
from softswitch.inprocess import Switch  # noqa: E402

LANES, WORKERS, PORTS = 8, 4, 24


def mutate(dice: random.Random, frame: bytes) -> bytes:
    """Bits flipped, bytes replaced, cut, repeated or lengthened."""
    data = bytearray(frame)
    for _ in range(dice.randrange(4)):
        choice = dice.randrange(5)
        at = dice.randrange(len(data)) if data else 0
        if choice == 0 and data:
            data[at] ^= 1 << dice.randrange(8)
        elif choice == 1 and data:
            data[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif choice == 2:
            del data[at:]
        elif choice == 3:
            data[at:at] = dice.randbytes(dice.randrange(1, 64))
        else:
            data += bytes(dice.randrange(1, 1500))
    return bytes(data)


def total_drops(switch: Switch) -> int:
    return sum(sum(switch.statistics(port)["drops"].values()) for port in range(PORTS))


def main() -> None:
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    sanitize = "sanitize" in sys.argv[3:]
    dice = random.Random(seed)
    program = build(ROOT / "p4src" / "luwu.p4", defines={"LANES": str(LANES), "SLOTS": "256"}, sanitize=sanitize)
    switch = Switch(program, seed=seed)
    set_up(switch, WORKERS)
    good = [worker_frame(LANES, worker, seq) for seq in range(64) for worker in range(WORKERS)]
    for number in range(count):
        frame = dice.randbytes(dice.randrange(400)) if dice.random() < 0.1 else mutate(dice, dice.choice(good))
        out = switch.inject(dice.randrange(PORTS), frame)
        assert all(length <= len(frame) + 512 for length in (len(f) for _, f in out)), (seed, number)
        if number % 1000 == 0 or number == count - 1:
            received = sum(switch.statistics(port)["rx_packets"] for port in range(PORTS))
            sent = sum(switch.statistics(port)["tx_packets"] for port in range(512))
            # One frame becomes one frame, none (a counted drop), or several: none goes without a trace.
            assert received == number + 1, (seed, number)
            assert sent + total_drops(switch) >= received, (seed, number, sent, total_drops(switch))
    print(f"seed {seed}: {count} frames, {total_drops(switch)} dropped, gen {GEN}")


if __name__ == "__main__":
    main()
