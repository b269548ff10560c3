"""Runs inside the simulator: modules of rtl/glm against the golden model, one cocotb test each, by device."""

from __future__ import annotations

import os
import random
from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from catchment.host.glm.numbers import Loss, Step
from catchment.sim.cosim.glm.training import LOSS_CODES
from catchment.sim.golden import glm

TOP = os.environ["TOP"]
SEED = int(os.environ["CATCHMENT_SEED"])


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


@cocotb.test(skip=TOP != "loss_lane")
async def loss_lane(dut: Any) -> None:
    """Activations of every size, six clocks later as scales."""
    rng = random.Random(SEED)
    Clock(dut.clk, 4, "ns").start()
    for loss in Loss:
        step = Step(rng.randrange(1 << 15, 1 << 16), 0)
        dut.loss.value, dut.multiplier.value = int(LOSS_CODES[loss]), step.multiplier
        expected: deque[int] = deque()
        for _ in range(500):
            size = rng.randrange(1, 31)
            activation = rng.randrange(-(1 << size), 1 << size)
            label = rng.randrange(-(1 << 18), 1 << 18) if loss == Loss.SQUARES else rng.choice([-1, 0, 1])
            found = glm.derivatives(loss, np.array([activation]), np.array([label]))
            expected.append(int(glm.scales_of(found, step)[0]))
            dut.activation.value, dut.label.value = activation, label
            await RisingEdge(dut.clk)
            await ReadOnly()
            if len(expected) == 6:
                assert dut.scale.value.to_signed() == expected.popleft(), (loss, activation, label)
            await FallingEdge(dut.clk)
