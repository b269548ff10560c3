"""Runs inside the simulator: modules of rtl/glm against the golden model, one cocotb test each, by device."""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from cocotb_start import start

from catchment.host.glm.numbers import Loss, Step
from catchment.sim.cosim.glm.training import LOSS_CODES
from catchment.sim.golden import glm
from catchment.wire.generated.glm_numbers import (
    ACCUMULATOR_BITS,
    ACTIVATION_LIMIT,
    BANKS,
    DERIVATIVE_LIMIT,
    SIGMOID_FRACTION,
    SIGMOID_ONE,
    SIGMOID_SEGMENTS,
    TARGET_LIMIT,
)

TOP = os.environ["TOP"]
SEED = int(os.environ["CATCHMENT_SEED"])
PATIENCE = 5000
MASK = (1 << 32) - 1
ACCUMULATOR_MASK = (1 << ACCUMULATOR_BITS) - 1


@cocotb.test(skip=TOP != "rounding_shift")
async def rounding_shift(dut: Any) -> None:
    """Values of every size at every shift; many of them exactly halves."""
    rng = random.Random(SEED)
    Clock(dut.clk, 4, "ns").start()
    for shift in range(48):
        dut.shift.value = shift
        expected: deque[int] = deque()
        for _ in range(60):
            size = rng.randrange(1, 47)
            value = rng.randrange(-(1 << size), 1 << size)
            if shift and rng.random() < 0.5:
                value = (value >> shift << shift) + (1 << shift - 1)
            value = max(-(1 << 47), min((1 << 47) - 1, value))
            expected.append(int(glm.round_half_even(np.array([value]), shift)[0]))
            dut.d.value = value
            await RisingEdge(dut.clk)
            await ReadOnly()
            if len(expected) == 3:
                assert dut.q.value.to_signed() + int(dut.up.value) == expected.popleft(), shift
            await FallingEdge(dut.clk)


def loss_corners(loss: Loss) -> list[tuple[int, int]]:
    """(activation, label) on both sides of each place where a loss changes, and at the ends of int32."""
    ends = (0, SIGMOID_ONE, SIGMOID_SEGMENTS << SIGMOID_FRACTION, 1 << 31)
    around = [sign * (end + near) for end in ends for near in (-1, 0, 1) for sign in (-1, 1)]
    if loss == Loss.SQUARES:
        labels = (0, TARGET_LIMIT, -TARGET_LIMIT)
        around += [label + sign * (DERIVATIVE_LIMIT + near) for label in labels for near in (0, 1) for sign in (-1, 1)]
    else:
        labels = (-1, 0, 1)
    return [(z, label) for z in around if -(1 << 31) <= z < 1 << 31 for label in labels]


@cocotb.test(skip=TOP != "loss_lane")
async def loss_lane(dut: Any) -> None:
    """Corners, then activations of every size, six clocks later as scales."""
    rng = random.Random(SEED)
    Clock(dut.clk, 4, "ns").start()
    for loss in Loss:
        # Half of all derivatives, times the least multiplier, lie between two scales.
        for multiplier in (1 << 15, rng.randrange(1 << 15, 1 << 16)):
            step = Step(multiplier, 0)
            dut.loss.value, dut.multiplier.value = int(LOSS_CODES[loss]), step.multiplier
            await RisingEdge(dut.clk)
            expected: deque[int] = deque()
            samples = loss_corners(loss)
            for _ in range(300):
                size = rng.randrange(1, 32)
                label = rng.randrange(-(1 << 18), 1 << 18) if loss == Loss.SQUARES else rng.choice([-1, 0, 1])
                samples.append((rng.randrange(-(1 << size), 1 << size), label))
            for activation, label in samples:
                found = glm.derivatives(loss, np.array([activation]), np.array([label]))
                expected.append(int(glm.scales_of(found, step)[0]))
                dut.activation.value, dut.label.value = activation, label
                await RisingEdge(dut.clk)
                await ReadOnly()
                if len(expected) == 6:
                    assert dut.scale.value.to_signed() == expected.popleft(), (loss, activation, label)
                await FallingEdge(dut.clk)


def totals(shift: int, rng: random.Random) -> list[int]:
    """Dot products of all workers' engines around both limits, on halves, and of every size."""
    limit, half = ACTIVATION_LIMIT << shift, 1 << shift - 1
    corners = [sign * (limit + near) for near in (-half, -1, 0, 1, half - 1, half, half + 1) for sign in (-1, 1)]
    others = [rng.randrange(-(1 << size), 1 << size) for size in rng.choices(range(1, ACCUMULATOR_BITS - 1), k=60)]
    return corners + [(value >> shift << shift) + half if rng.random() < 0.3 else value for value in others]


@cocotb.test(skip=TOP != "activations")
async def activations(dut: Any) -> None:
    """Sums of all engines, offered at different times, while what takes the activations stalls."""
    engines = len(dut.s_sums_valid)
    rng = await start(dut, s_sums_valid=0, m_ready=0, shift=1)
    seen: Counter[str] = Counter()
    for shift in (1, 24, *rng.sample(range(2, 24), 2)):
        dut.shift.value = shift
        values = totals(shift, rng)
        batches = [[rng.choice(values) for _ in range(BANKS)] for _ in values]
        for value, batch in zip(values, batches, strict=True):  # each total comes to some bank
            batch[rng.randrange(BANKS)] = value
        to_take, expected = deque(batches), deque(batches)
        shares: list[list[int]] = []
        valid, held, clocks = 0, None, 0
        while expected:
            clocks += 1
            assert clocks < PATIENCE, f"{len(expected)} of {len(batches)} are left"
            if not shares and to_take:
                shares = parts(to_take[0], engines, rng)
                dut.s_sums.value = sum(
                    (share & ACCUMULATOR_MASK) << ACCUMULATOR_BITS * (BANKS * engine + bank)
                    for engine, of_engine in enumerate(shares)
                    for bank, share in enumerate(of_engine)
                )
            if shares:
                valid |= rng.getrandbits(engines) | (valid if rng.random() < 0.5 else (1 << engines) - 1)
            dut.s_sums_valid.value = valid
            slow = clocks // 100 % 2
            dut.m_ready.value = int(rng.random() < (0.9, 0.1)[slow])
            await ReadOnly()
            taken = bool(dut.s_sums_ready.value)
            assert not taken or valid == (1 << engines) - 1, "taken while an engine has no sum"
            seen["no room"] += valid == (1 << engines) - 1 and not taken
            out = (int(dut.m_lanes.value), int(dut.m_saturated.value)) if dut.m_valid.value else None
            assert held is None or out == held, "what waits has changed"
            held = out
            if out is not None and dut.m_ready.value:
                exact = glm.round_half_even(np.array(expected.popleft()), shift)
                cut = glm.saturate(exact, glm.ACTIVATION_LIMIT)
                assert out == (sum((int(lane) & MASK) << 32 * k for k, lane in enumerate(cut)), (exact != cut).sum())
                seen["cut"] += int((exact != cut).any())
                held = None
            if taken:
                to_take.popleft()
                shares, valid = [], 0
            await RisingEdge(dut.clk)
    assert all(seen[what] > 10 for what in ("no room", "cut")), seen
    dut._log.info("coverage: %s", dict(seen))


def parts(batch: list[int], engines: int, rng: random.Random) -> list[list[int]]:
    """A batch's totals as sums of each engine: shape (engines, banks)."""
    found = [[rng.randrange(-(1 << 58), 1 << 58) for _ in batch] for _ in range(engines - 1)]
    last = [total - sum(of_engine[bank] for of_engine in found) for bank, total in enumerate(batch)]
    return [*found, last]
