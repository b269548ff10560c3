"""Runs inside the simulator: what every cocotb test of this folder begins with."""

from __future__ import annotations

import os
import random
from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

SEED = int(os.environ["CATCHMENT_SEED"])


async def start(dut: Any, **idle: int) -> random.Random:
    """Begin with a clock, a reset, and inputs at rest; gives the draws of the test."""
    for name, value in idle.items():
        getattr(dut, name).value = value
    Clock(dut.clk, 4, "ns").start()
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    return random.Random(SEED)
