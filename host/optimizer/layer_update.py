"""One optimizer step on the sections of a layer, wherever they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from catchment.host.layers import LayerSpec, TensorSpec
from catchment.host.optimizer.rules import UpdateRule
from catchment.host.optimizer.store import Memory

if TYPE_CHECKING:
    import numpy.typing as npt

    from catchment.host import _optimizer


@dataclass(frozen=True, slots=True)
class Step:
    """What one step is done with.

    Attributes:
        of: gives the rule and the learning rate of the tensor with that name; None: the tensor stays as it is.
        scale: what the sums of gradients are multiplied by.
    """

    of: Callable[[str], tuple[UpdateRule, float] | None]
    scale: float


@dataclass(frozen=True, slots=True)
class Updated:
    """Digests before and after (devices, 4), and how often each tensor has now been updated."""

    before: npt.NDArray[np.uint32]
    after: npt.NDArray[np.uint32]
    steps: tuple[int, ...]


def update_layer(  # noqa: PLR0917
    updater: _optimizer.Updater,
    layer: LayerSpec,
    sections: Mapping[str, Memory],
    gradients: Memory,
    steps: Sequence[int],
    usable: Sequence[int],
    step: Step,
    shard_units: Sequence[int],
) -> Updated:
    """Update the tensors numbered in `usable` that `step` has a rule for; others keep weights, moments and count.

    Args:
        updater: threads and kernels.
        layer: the layer's tensors.
        sections: by name (catchment.host.optimizer.store.geometry), whole and padded.
        gradients: the layer's sums, fp32.
        steps: how often each tensor was updated so far.
        usable: numbers of the tensors to update, ascending.
        step: the optimizer's constants.
        shard_units: units of each device's shard, for the digests.
    """
    counted = list(steps)
    chosen: list[TensorSpec] = []
    rows: list[tuple[float, ...]] = []
    for number in usable:
        tensor = layer.tensors[number]
        if (found := step.of(tensor.name)) is None:
            continue
        rule, lr = found
        counted[number] += 1
        chosen.append(tensor)
        rows.append(rule.scalars(counted[number], lr, step.scale))
    before, after = updater.update(
        parameters=sections.get("parameters"),
        master=sections["master"],
        first=sections["first"],
        second=sections.get("second"),
        bf16_moments=sections["first"].size < sections["master"].size,
        gradient=gradients,
        shard_units=list(shard_units),
        offsets=[tensor.offset for tensor in chosen],
        counts=[tensor.numel for tensor in chosen],
        scalars=np.array(rows, dtype=np.float32).reshape(len(rows), len(rows[0]) if rows else 0),
    )
    return Updated(before, after, tuple(counted))
