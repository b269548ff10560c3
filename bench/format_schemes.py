"""The ways to add gradients up that `bench.formats` compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bench import gloo_sums
from catchment.host.optimizer import DelayedScaling, ScalingOptions
from catchment.sim.golden import collectives
from catchment.sim.golden.lane_formats import LaneFormat
from catchment.sim.golden.scaled_sums import block_exponents, exponent_of, from_wire, scaled_sum, to_wire
from catchment.sim.lab.local_switch import SLOTS
from catchment.wire.generated.constants import DataType

Parts = Sequence[NDArray[np.float32]]  # one flat array per worker
Reals = NDArray[np.float64]

TYPES = (DataType.FP32, DataType.FP16, DataType.BF16)
_TORCH = {DataType.FP32: torch.float32, DataType.FP16: torch.float16, DataType.BF16: torch.bfloat16}
_FIXED_HEADROOM = 3


class Scheme:
    """Adds one tensor's gradients up, step after step."""

    def __init__(self, add: Callable[[Parts], Reals | None]) -> None:
        """`add` gives the sum as the workers get it, or None if the tensor is to be left alone in this step."""
        self.add = add


def exact(parts: Parts) -> Reals:
    """The sum as a real number (fp32 elements of a few workers add up without rounding in float64, nearly always)."""
    total: Reals = np.sum([part.astype(np.float64) for part in parts], axis=0)
    return total


def floats(dtype: DataType) -> Scheme:
    """Sums of floats of `dtype`, rounded after each addition, in the order of ranks: what a ring does to an element."""

    def add(parts: Parts) -> Reals:
        total = torch.from_numpy(parts[0]).to(_TORCH[dtype])
        for part in parts[1:]:
            total = total + torch.from_numpy(part).to(_TORCH[dtype])
        return total.to(torch.float64).numpy()

    return Scheme(add)


def gloo(dtype: DataType) -> Scheme:
    """The sum that `all_reduce` of torch's gloo gives."""

    def add(parts: Parts) -> Reals:
        total = gloo_sums.add([torch.from_numpy(part).to(_TORCH[dtype], copy=True) for part in parts])
        return total.to(torch.float64).numpy()

    return Scheme(add)


def block(dtype: DataType, lanes: int) -> Scheme:
    """The sum that `all_reduce` gives with a program of `lanes` lanes: gathered, on the grid or by vectors' own E."""

    def add(parts: Parts) -> Reals:
        wire = [to_wire(part, dtype) for part in parts]
        return from_wire(collectives.total(wire, dtype, lanes=lanes, slots=SLOTS), dtype)

    return Scheme(add)


@dataclass(slots=True)
class FixedExponent:
    """One E for a whole model and run: that of the first step's largest gradient, and three more."""

    value: int | None = None

    def fit(self, parts: Sequence[Parts]) -> None:
        """Choose E from the first step's gradients: a tensor's, for each tensor."""
        largest = max(float(np.abs(part).max()) for tensor in parts for part in tensor)
        self.value = int(exponent_of(np.asarray(largest))) + _FIXED_HEADROOM


def fixed(dtype: DataType, exponent: FixedExponent, lanes: int) -> Scheme:
    """Fixed scaling with the exponent that was fitted."""

    def add(parts: Parts) -> Reals:
        assert exponent.value is not None
        wire = [to_wire(part, dtype) for part in parts]
        return from_wire(scaled_sum(wire, dtype, exponent.value, lanes).values, dtype)

    return Scheme(add)


def delayed(name: str, dtype: DataType, workers: int, lanes: int) -> Scheme:
    """Delayed scaling as the optimizer node does it; the first steps are without history."""
    scaling = DelayedScaling(name, workers, ScalingOptions())

    def add(parts: Parts) -> Reals | None:
        wire = [to_wire(part, dtype) for part in parts]
        total = scaled_sum(wire, dtype, scaling.exponent, lanes)
        values = from_wire(total.values, dtype)
        return values if scaling.observe(float(np.abs(values).max()), total.saturated > 0) else None

    return Scheme(add)


def packed_block(dtype: DataType, lanes: int) -> Scheme:
    """Packed lanes: each vector of twice as many elements has its own E, as peers push and pull them with `block`."""

    def add(parts: Parts) -> Reals:
        wire = [to_wire(part, dtype) for part in parts]
        form, count = LaneFormat(len(parts), packed=True), 2 * lanes
        sums = []
        for vector, exponent in enumerate(block_exponents(wire, dtype, count)):
            rows = [part[vector * count : (vector + 1) * count] for part in wire]
            total = form.add([form.quantize(row, dtype, int(exponent)).lanes for row in rows])
            sums.append(form.dequantize(total, dtype, int(exponent), len(rows[0])))
        return from_wire(np.concatenate(sums), dtype)

    return Scheme(add)


def packed_delayed(name: str, dtype: DataType, workers: int) -> Scheme:
    """Packed lanes with delayed scaling, as `catchment demo --gradients int16` has them; the sum is fp32."""
    scaling, form = DelayedScaling(name, workers, ScalingOptions()), LaneFormat(workers, packed=True)

    def add(parts: Parts) -> Reals | None:
        quantized = [form.quantize(to_wire(part, dtype), dtype, scaling.exponent) for part in parts]
        total, exponent = form.add([one.lanes for one in quantized]), scaling.exponent
        usable = scaling.observe(form.largest(total, exponent), any(one.saturated for one in quantized))
        return (
            from_wire(form.dequantize(total, DataType.FP32, exponent, len(parts[0])), DataType.FP32) if usable else None
        )

    return Scheme(add)
