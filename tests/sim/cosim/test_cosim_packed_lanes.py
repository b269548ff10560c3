"""Packed lanes between NICs in RTL, endpoints and the switch: the golden sums, under loss, and on the wire."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.rtl.driver.request import RequestError
from catchment.rtl.generated.nic_regs import Status
from catchment.sim.cosim import Faults, Machine
from catchment.sim.cosim.rounds import as_type
from catchment.sim.golden import block_messages, packed_lanes
from catchment.wire.generated.constants import DataType, Flag, Header, PacketType

pytestmark = pytest.mark.sampled(4)  # what it builds takes a minute

LANES = 64
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
WORKERS = ("w0", "w1", "w2")
ROUGH = Faults(loss=0.01, duplicate=0.01, reorder=0.02)


def values(rng: random.Random, count: int, dtype: DataType, *, bad: bool = False) -> NDArray[Any]:
    """Numbers of many sizes around 2^E for E = 1; with `bad`, NaN, an infinity and one beyond; others in each call."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    real = (numbers.normal(size=count) * np.exp2(numbers.integers(-12, 1, count))).astype(np.float32)
    if bad:
        real[numbers.integers(0, count, 3)] = [np.nan, -np.inf, 40.0]
    return as_type(real, dtype)


def summed(parts: Sequence[NDArray[Any]], pushed: DataType, exponent: int, pulled: DataType) -> bytes:
    """What every member that pulls must get."""
    lanes = [packed_lanes.quantize(part, pushed, exponent, len(parts)).lanes for part in parts]
    total = packed_lanes.add_lanes(lanes)
    return packed_lanes.dequantize(total, pulled, exponent, len(parts), len(parts[0])).tobytes()


def saturated(parts: Sequence[NDArray[Any]], dtype: DataType, exponent: int) -> list[tuple[int, int]]:
    cut = [packed_lanes.quantize(part, dtype, exponent, len(parts)) for part in parts]
    return [(one.saturated, one.nonfinite) for one in cut]


@pytest.mark.parametrize("software", [(), ("w1",), ("w0", "w2")])
def test_all_members_get_the_golden_sums(software: tuple[str, ...], rng: random.Random) -> None:
    """Types and lengths one after another, odd ones too, some with NaN and numbers that are cut."""
    with Machine.star(3, software=software, seed=rng.getrandbits(32)) as machine:
        machine.allreduce(list(WORKERS), slots=64, packed=True)
        for cable in machine.cables.values():
            cable.faults(ROUGH)
        for index, count in enumerate((1, 2, 127, 128, 129, rng.randrange(1, 6000))):
            pushed, pulled = rng.choice(FLOATS), rng.choice(FLOATS)
            bad = index % 3 == 1
            parts = [values(rng, count, pushed, bad=bad) for _ in WORKERS]
            expected = summed(parts, pushed, 1, pulled)
            with machine.together():
                pulls = [machine[w].pull(len(expected), pulled) for w in WORKERS]
                pushes = [machine[w].push(part, pushed, 1) for w, part in zip(WORKERS, parts, strict=True)]
            machine.finish([*pulls, *pushes])
            cut = saturated(parts, pushed, 1)
            for push, wanted in zip(pushes, cut, strict=True):
                push.check()
                if push.host.name not in software:
                    record = push.request.check()
                    assert (record.saturated, record.nonfinite) == wanted
            for pull in pulls:
                assert pull.check() == expected, (pull.host.name, pushed.name, pulled.name, count)
                assert bool(pull.flags & Flag.SAT) == any(one for one, _ in cut)
            for transfer in (*pushes, *pulls):
                transfer.release()


@pytest.mark.parametrize("software", [(), ("w1",), ("opt",)])
def test_gradients_go_packed_to_the_root_and_parameters_as_bytes(software: tuple[str, ...], rng: random.Random) -> None:
    with Machine.star(3, software=software, seed=rng.getrandbits(32)) as machine:
        machine.luwu(list(WORKERS), root="opt", slots=64, packed=True)
        for cable in machine.cables.values():
            cable.faults(ROUGH)
        for pushed in FLOATS:
            parts = [values(rng, rng.choice([999, 2048]), pushed) for _ in range(1)]
            parts += [values(rng, len(parts[0]), pushed) for _ in WORKERS[1:]]
            pulled = rng.choice(FLOATS)
            expected = summed(parts, pushed, 1, pulled)
            raw = rng.randbytes(rng.randrange(1, 5000))
            pulls = [machine["opt"].pull(len(expected), pulled)]
            copies = [machine[w].pull(len(raw), DataType.BYTES) for w in WORKERS]
            pushes = [machine[w].push(part, pushed, 1) for w, part in zip(WORKERS, parts, strict=True)]
            pushes.append(machine["opt"].push(raw, DataType.BYTES))
            machine.finish([*pulls, *copies, *pushes])
            assert pulls[0].check() == expected, (pushed.name, pulled.name)
            assert [copy.check() == raw for copy in copies] == [True] * 3


def agreed(parts: Sequence[NDArray[Any]], dtype: DataType) -> list[int]:
    """The E of every vector of 2 * LANES elements."""
    return block_messages.agreed(parts, dtype, 2 * LANES)


@pytest.mark.parametrize("software", [(), ("w1",)])
def test_block_scaled_sums_in_packed_lanes(software: tuple[str, ...], rng: random.Random) -> None:
    with Machine.star(3, software=software, seed=rng.getrandbits(32)) as machine:
        machine.allreduce(list(WORKERS), slots=16, packed=True)
        for cable in machine.cables.values():
            cable.faults(ROUGH)
        for dtype in FLOATS:
            count = rng.choice([1, 2 * LANES, 32 * LANES + 1, rng.randrange(1, 6000)])
            parts = [values(rng, count, dtype) for _ in WORKERS]
            rows = [
                np.frombuffer(one, parts[0].dtype)
                for i, exponent in enumerate(agreed(parts, dtype))
                for one in [summed([p[128 * i : 128 * i + 128] for p in parts], dtype, exponent, dtype)]
            ]
            expected = np.concatenate(rows).tobytes()
            pulls = [machine[w].pull(len(expected), dtype, block=True) for w in WORKERS]
            pushes = [machine[w].push(part, dtype, block=True) for w, part in zip(WORKERS, parts, strict=True)]
            machine.finish([*pulls, *pushes])
            for pull in pulls:
                assert pull.check() == expected, (pull.host.name, dtype.name, count)
                assert not pull.flags & Flag.SAT


def test_half_of_the_bytes_travel_and_are_the_golden_ones(rng: random.Random, tmp_path: Path) -> None:
    """Every frame of hardware (w0, w2) and of software (w1): lanes, flags and how many there are."""
    from scapy.utils import PcapNgReader

    dtype = rng.choice(FLOATS)
    count = 20 * 2 * LANES - rng.randrange(0, 2 * LANES)
    parts = [values(rng, count, dtype) for _ in WORKERS]
    with Machine.star(3, software=("w1",), seed=rng.getrandbits(32)) as machine:
        machine.allreduce(list(WORKERS), slots=64, packed=True)
        with machine.capture(tmp_path / "run.pcapng"):
            pulls = [machine[w].pull(parts[0].nbytes, dtype) for w in WORKERS]
            pushes = [machine[w].push(part, dtype, 1) for w, part in zip(WORKERS, parts, strict=True)]
            machine.finish([*pulls, *pushes])
    found: dict[int, dict[int, NDArray[np.int32]]] = {wid: {} for wid in range(3)}
    with PcapNgReader(str(tmp_path / "run.pcapng")) as packets:
        for packet in packets:
            raw = bytes(packet)
            header = Header.unpack(raw[42:])
            if header.type == PacketType.PA:
                assert header.flags & Flag.PACKED
                found[header.wid].setdefault(header.seq, np.frombuffer(raw[64:], ">i4").astype(np.int32))
            elif header.type in (PacketType.HB, PacketType.MH):
                assert not header.flags & Flag.PACKED
    for wid, part in enumerate(parts):
        assert len(found[wid]) == 20
        sent = np.concatenate([found[wid][seq] for seq in sorted(found[wid])])
        wanted = packed_lanes.quantize(part, dtype, 1, 3).lanes
        assert np.array_equal(sent[: len(wanted)], wanted) and not sent[len(wanted) :].any()


def test_integers_in_packed_lanes_are_refused(rng: random.Random) -> None:
    with Machine.star(2, seed=rng.getrandbits(32)) as machine:
        machine.allreduce(["w0", "w1"], slots=64, packed=True)
        push = machine["w0"].push(np.arange(64, dtype=np.int32), DataType.INT32)
        pull = machine["w0"].pull(256, DataType.INT32)
        machine.finish([push, pull])
        for transfer in (push, pull):
            with pytest.raises(RequestError, match="BAD_TYPE"):
                transfer.check()
        assert push.request.completion.status == Status.BAD_TYPE
