"""Block-scaled all-reduce by NICs and software members of one job: the bits of the golden model, on the wire too."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.sim.cosim import Faults, Machine
from catchment.sim.cosim.rounds import as_type
from catchment.sim.golden import block_messages, formats
from catchment.wire.generated.constants import DataType, Flag, Header, PacketType

pytestmark = pytest.mark.sampled(4)  # what it builds takes a minute

LANES = 64
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
WORKERS = ("w0", "w1", "w2")


def uneven(rng: random.Random, count: int) -> NDArray[np.float32]:
    """Numbers of very different sizes from vector to vector, which no shared exponent holds; others in each call."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    sizes = numbers.integers(-12, 12, -(-count // LANES)).repeat(LANES)[:count]
    values = numbers.normal(size=count) * np.exp2(sizes)
    values[numbers.random(count) < 0.1] = 0
    return values.astype(np.float32)


def play(machine: Machine, parts: Sequence[NDArray[np.float32]], dtype: DataType) -> None:
    typed = [as_type(part, dtype) for part in parts]
    expected = block_messages.total(typed, dtype, LANES).tobytes()
    with machine.together():
        pulls = [machine[w].pull(len(expected), dtype, block=True) for w in WORKERS]
        pushes = [machine[w].push(part, dtype, block=True) for w, part in zip(WORKERS, typed, strict=True)]
    machine.finish([*pulls, *pushes])
    for transfer in pushes:
        transfer.check()
    for transfer in pulls:
        assert transfer.check() == expected, f"{transfer.host.name} of {dtype.name}"
        assert not transfer.flags & Flag.SAT
    for transfer in (*pushes, *pulls):
        transfer.release()


@pytest.mark.parametrize("software", [(), ("w1",), ("w0", "w2"), WORKERS])
@pytest.mark.parametrize("slots", [16, 256])
def test_all_members_get_the_golden_sums(software: tuple[str, ...], slots: int, rng: random.Random) -> None:
    with Machine.star(3, software=software, seed=rng.getrandbits(32)) as machine:
        machine.allreduce(list(WORKERS), slots=slots)
        for cable in machine.cables.values():
            cable.faults(Faults(loss=0.01, duplicate=0.01, reorder=0.02))
        for dtype in FLOATS:
            count = rng.choice([1, LANES, LANES * slots, rng.randrange(1, 8000)])
            play(machine, [uneven(rng, count) for _ in WORKERS], dtype)


def test_what_leaves_is_what_the_golden_model_sends(rng: random.Random, tmp_path: Path) -> None:
    """Every frame of hardware (w0) and of software (w1) is compared: lanes, exponents, next exponents and flags."""
    slots = 16
    dtype = rng.choice(FLOATS)
    parts = [as_type(uneven(rng, rng.choice([5, 40]) * LANES - 3), dtype) for _ in range(1)]
    parts += [as_type(uneven(rng, len(parts[0])), dtype) for _ in WORKERS[1:]]
    agreed = block_messages.agreed(parts, dtype, LANES)
    with Machine.star(3, software=("w1",), seed=rng.getrandbits(32)) as machine:
        machine.allreduce(list(WORKERS), slots=slots)
        with machine.capture(tmp_path / "run.pcapng"):
            play_typed(machine, parts, dtype)
    frames = sent_vectors(tmp_path / "run.pcapng")
    for wid, part in enumerate(parts):
        expected = block_messages.sent(part, dtype, agreed, workers=3, lanes=LANES, slots=slots)
        assert len(frames[wid]) == len(expected)
        for (header, lanes), vector in zip(frames[wid], expected, strict=True):
            assert np.array_equal(lanes, vector.lanes)
            assert (header.exp, bool(header.flags & Flag.LAST)) == (vector.exponent, vector.last)
            assert bool(header.flags & Flag.SAT) == vector.saturated
            assert (header.next_exp if header.flags & Flag.EXPV else None) == vector.next_exp


def play_typed(machine: Machine, parts: Sequence[NDArray[np.generic]], dtype: DataType) -> None:
    pulls = [machine[w].pull(parts[0].nbytes, dtype, block=True) for w in WORKERS]
    pushes = [machine[w].push(part, dtype, block=True) for w, part in zip(WORKERS, parts, strict=True)]
    machine.finish([*pulls, *pushes])


def sent_vectors(path: Path) -> dict[int, list[tuple[Header, NDArray[np.int32]]]]:
    """Worker index -> the header and lanes of every PA that left it, in the order of sequence numbers."""
    from scapy.utils import PcapNgReader

    found: dict[int, dict[int, tuple[Header, NDArray[np.int32]]]] = defaultdict(dict)
    with PcapNgReader(str(path)) as packets:
        for packet in packets:
            raw = bytes(packet)
            header = Header.unpack(raw[42:])
            if header.type == PacketType.PA:
                lanes = np.frombuffer(raw[64:], ">i4").astype(np.int32)
                found[header.wid].setdefault(header.seq, (header, lanes))
    return {wid: [vectors[seq] for seq in sorted(vectors)] for wid, vectors in found.items()}


def test_the_nic_says_what_a_message_needed(rng: random.Random) -> None:
    """What a shared exponent would have had to be: for delayed scaling, without a look at the values."""
    with Machine.star(2, seed=rng.getrandbits(32)) as machine:
        machine.luwu(["w0", "w1"], root="opt", slots=256)
        for dtype in FLOATS:
            parts = [as_type(uneven(rng, 1000), dtype) for _ in range(2)]
            pull = machine["opt"].pull(parts[0].nbytes, dtype)
            pushes = [machine[f"w{i}"].push(part, dtype, exponent=3) for i, part in enumerate(parts)]
            machine.finish([pull, *pushes])
            for part, push in zip(parts, pushes, strict=True):
                largest = float(np.abs(formats.exact(part, dtype)[0]).max())
                assert push.request.check().needed == np.frexp(largest)[1]
