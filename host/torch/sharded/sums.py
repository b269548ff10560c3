"""Sums of one rank's chunk over micro-steps and over the groups that hold the same part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import torch

from catchment.host.collectives import Scaling, Work
from catchment.host.torch.sharded.arenas import Arena
from catchment.host.torch.sharded.links import Line

_HALF: Final = 24
"""Bits of the lower lane of a sum of several micro-steps: 32 groups' lower lanes still fit an int32."""
_LANE_BITS: Final = 30


class Sums(Protocol):
    """What becomes of a layer's gradients."""

    dtype: torch.dtype
    """The type of what is summed over the partition group."""
    saturated: int
    """Own gradients that were cut."""

    @property
    def nbytes(self) -> int:
        """Memory of the sums."""

    def enter(self, gradient: torch.Tensor, array: torch.Tensor) -> None:
        """Make of a layer's gradients what is summed."""

    def add(self, layer: int, chunk: torch.Tensor, *, first: bool) -> None:
        """Take a micro-step's sum of the partition group."""

    def replicate(self, layer: int, line: Line) -> Work | None:
        """Begin to sum what was taken over the groups that hold the same part."""

    def collect(self, layer: int) -> None:
        """Take what `replicate` has summed, once it is done."""

    def mean(self, layer: int, out: torch.Tensor, count: int) -> None:
        """Write the mean of `count` gradients, fp32."""

    def join(self, chunk: torch.Tensor, line: Line) -> Work | None:
        """Begin to sum a micro-step's chunk over the groups that hold the same part."""


class _MicroSteps:
    """Micro-steps of each layer, added in their order."""

    def __init__(self, chunks: Sequence[int], dtype: torch.dtype) -> None:
        self._sums = Arena(chunks, dtype)

    def add(self, layer: int, chunk: torch.Tensor, *, first: bool) -> None:
        """See `Sums`."""
        if first:
            self._sums[layer].copy_(chunk)
        else:
            self._sums[layer].add_(chunk)


class FloatSums(_MicroSteps):
    """Micro-steps are added in fp32, in their order."""

    dtype = torch.float32
    saturated = 0

    def __init__(self, chunks: Sequence[int], scaling: Scaling) -> None:
        """`chunks`: elements of each layer's."""
        super().__init__(chunks, torch.float32)
        self._scaling = scaling
        self.nbytes = self._sums.nbytes

    def enter(self, gradient: torch.Tensor, array: torch.Tensor) -> None:
        """See `Sums`."""
        if gradient.data_ptr() != array.data_ptr():
            array.copy_(gradient)

    def replicate(self, layer: int, line: Line) -> Work | None:
        """See `Sums`."""
        if line.communicator is None:
            return None
        return line.communicator.all_reduce(self._sums[layer], scaling=self._scaling, tag=layer)

    def collect(self, layer: int) -> None:
        """See `Sums`: it is in place."""

    def mean(self, layer: int, out: torch.Tensor, count: int) -> None:
        """See `Sums`."""
        torch.div(self._sums[layer], count, out=out)

    def join(self, chunk: torch.Tensor, line: Line) -> Work | None:
        """See `Sums`."""
        return None if line.communicator is None else line.communicator.all_reduce(chunk, scaling=self._scaling)


class IntSums(_MicroSteps):
    """Gradients are integers of one exponent E from the beginning, as `Fixed(E)` makes them for the whole world.

    A sum of integers is exact, so its bits do not depend on how ranks and micro-steps are grouped; it is rounded once.
    """

    dtype = torch.int32

    def __init__(self, chunks: Sequence[int], largest: int, exponent: int, world: int) -> None:
        """`largest`: elements of the largest layer."""
        super().__init__(chunks, torch.int64)
        self.saturated = 0
        bits = _LANE_BITS - (world - 1).bit_length()
        self._scale, self._most = 2.0 ** (bits - exponent), float(2**bits)
        self._scratch = torch.zeros(largest)
        self._lanes = Arena([2 * chunk for chunk in chunks], torch.int32)
        self.nbytes = self._sums.nbytes + self._lanes.nbytes + 4 * largest

    def enter(self, gradient: torch.Tensor, array: torch.Tensor) -> None:
        """See `Sums`; infinities and NaN go to the end that their sign bit names."""
        scaled = torch.mul(gradient, self._scale, out=self._scratch[: gradient.numel()]).round_()
        if not float(scaled.abs().max()) <= self._most:
            cut = ~(scaled.abs() <= self._most)
            self.saturated += int(cut.sum())
            scaled.copy_(torch.where(cut, torch.full_like(scaled, self._most).copysign_(gradient), scaled))
        array.copy_(scaled)

    def replicate(self, layer: int, line: Line) -> Work | None:
        """See `Sums`: two lanes of 32 bits for each sum."""
        if line.communicator is None:
            return None
        sums, lanes = self._sums[layer], self._lanes[layer].view(2, -1)
        lanes[0].copy_(sums >> _HALF)
        lanes[1].copy_(sums & ((1 << _HALF) - 1))
        return line.communicator.all_reduce(self._lanes[layer], tag=layer)

    def collect(self, layer: int) -> None:
        """See `Sums`: puts the lanes together."""
        lanes = self._lanes[layer].view(2, -1)
        self._sums[layer].copy_(lanes[0]).bitwise_left_shift_(_HALF).add_(lanes[1])

    def mean(self, layer: int, out: torch.Tensor, count: int) -> None:
        """See `Sums`: rounded to fp32 once, then divided."""
        out.copy_(self._sums[layer].double().div_(self._scale)).div_(count)

    def join(self, chunk: torch.Tensor, line: Line) -> Work | None:
        """See `Sums`."""
        return None if line.communicator is None else line.communicator.all_reduce(chunk)
