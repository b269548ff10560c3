"""How many ranks a partition group needs: the bytes of a transformer's training on each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.groups import partition_sizes

GIB: Final = 1 << 30
_STATES: Final = 16  # bytes a parameter: 2 of it, 2 of its gradient, 12 of the optimizer
_HALF: Final = 2
_USABLE: Final = 0.93
"""The share of a device's memory that may be used; the rest is the framework's, and lost between allocations."""


@dataclass(frozen=True, slots=True)
class Transformer:
    """The shape of a language model.

    Attributes:
        hidden: width. layers: number of them. heads: of attention. vocabulary: tokens known.
    """

    hidden: int
    layers: int
    heads: int
    vocabulary: int

    @property
    def layer_parameters(self) -> int:
        """Parameters of a layer: 4 h^2 of attention, 8 h^2 of the feed-forward network."""
        return 12 * self.hidden**2

    @property
    def parameters(self) -> int:
        """Parameters of all layers and the embedding."""
        return self.layers * self.layer_parameters + self.vocabulary * self.hidden


MODELS: Final[Mapping[str, Transformer]] = {
    "BERT-10B": Transformer(2560, 127, 40, 32008),
    "BERT-15B": Transformer(2560, 190, 40, 32008),
    "BERT-20B": Transformer(5120, 64, 40, 32008),
    "BERT-50B": Transformer(8192, 62, 40, 32008),
    "RoBERTa-20B": Transformer(5120, 62, 40, 50265),
    "GPT2-20B": Transformer(5120, 62, 40, 50265),
    "OPT-1.3B": Transformer(2048, 24, 32, 50272),
    "OPT-6.7B": Transformer(4096, 32, 32, 50272),
    "OPT-13B": Transformer(5120, 40, 40, 50272),
    "OPT-30B": Transformer(7168, 48, 56, 50272),
    "OPT-66B": Transformer(9216, 64, 72, 50272),
}


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes of each rank in a partition group of `partition_size`.

    Attributes:
        states: parameters, gradients and optimizer states: the rank's part of 16 bytes a parameter.
        layers: those gathered ahead and in use, and one layer's gradients, 16 bits each.
        activations: what backward needs of every layer, all of one layer that is computed again, and the logits.
    """

    partition_size: int
    states: int
    layers: int
    activations: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.states + self.layers + self.activations


def need(model: Transformer, partition_size: int, *, batch: int = 8, sequence: int = 512, prefetch: int = 2) -> Need:
    """What a rank needs with micro-batches of `batch` sequences of `sequence` tokens and `prefetch` layers ahead."""
    tokens = batch * sequence
    checkpoints = _HALF * tokens * model.hidden * model.layers
    one_layer = 34 * tokens * model.hidden + 5 * batch * model.heads * sequence**2
    logits = 4 * tokens * model.vocabulary
    return Need(
        partition_size,
        states=_STATES * model.parameters // partition_size,
        layers=_HALF * (prefetch + 1) * model.layer_parameters,
        activations=checkpoints + one_layer + logits,
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The partition size that was chosen, and what each that was looked at needs.

    Attributes:
        usable: bytes of each rank that may be used.
    """

    partition_size: int
    usable: int
    looked_at: tuple[Need, ...]


def choose(needs: Mapping[int, Need], memory: int, what: str) -> Choice:
    """The smallest partition size that fits, of those in `needs`.

    Args:
        needs: of each size that the world allows.
        memory: bytes of each rank.
        what: the model, for messages.

    Raises:
        ShardingError: none fits; says by how much.
    """
    usable = int(_USABLE * memory)
    looked_at: list[Need] = []
    for size in sorted(needs):
        looked_at.append(needs[size])
        if needs[size].total <= usable:
            return Choice(size, usable, tuple(looked_at))
    best = needs[max(needs)]
    short = best.total - usable
    hint = (
        "more ranks share its states"
        if best.layers + best.activations < usable
        else "its layers and activations alone are too large: a smaller micro-batch or fewer layers ahead need less"
    )
    raise ShardingError(
        f"{what} fits no partition group: on {best.partition_size} ranks each needs {best.total / GIB:.1f} GiB, "
        f"{short / GIB:.1f} GiB more than the {usable / GIB:.1f} GiB that may be used of {memory / GIB:.1f}; {hint}"
    )


def choose_for(
    name: str, world: int, node_size: int, memory: int, *, batch: int = 8, sequence: int = 512, prefetch: int = 2
) -> Choice:
    """The smallest partition size for one of `MODELS`; see `choose`.

    Raises:
        ShardingError: there is no such model, or it does not fit.
    """
    if name not in MODELS:
        raise ShardingError(f"there is no model {name}: give one of {', '.join(MODELS)}")
    model = MODELS[name]
    needs = {
        size: need(model, size, batch=batch, sequence=sequence, prefetch=prefetch)
        for size in partition_sizes(world, node_size)
    }
    return choose(needs, memory, name)
