"""What clients and proxies agree on: the tensors, their exponents, and the shards in which they travel."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from catchment.host.given_numbers import is_whole, keep_whole
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.partition import partition

_BYTES = 4  # of an element
EXPONENTS = range(-128, 128)
_MOST = 1 << 40
"""Elements of a tensor: no machine has more."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A tensor that every client pushes once in every step.

    Attributes:
        name: unique in the table.
        numel: elements.
        exponent: E of its gradients, |x| < 2**E; None: they are summed as fp32, which a ring can and a switch cannot.
    """

    name: str
    numel: int
    exponent: int | None


@dataclass(frozen=True, slots=True)
class Shard:
    """Elements `start` to `stop` of the tensor numbered `tensor`."""

    tensor: int
    start: int
    stop: int


@dataclass(frozen=True)
class TensorTable:
    """The tensors in forward order; their shards are numbered in the same order.

    Attributes:
        tensors: at least one.
        shard_bytes: S', the least size of a shard (`partition`).
    """

    tensors: tuple[Registered, ...]
    shard_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if not isinstance(self.tensors, tuple | list) or not all(isinstance(t, Registered) for t in self.tensors):
            raise ProxyError(f"a table of {self.tensors!r:.80}: give a tuple of Registered")
        if not self.tensors:
            raise ProxyError("a table without tensors: register one at least")
        if not is_whole(self.shard_bytes, 1):
            raise ProxyError(f"shards of {self.shard_bytes!r} bytes: at least 1")
        for tensor in self.tensors:
            if not isinstance(tensor.name, str):
                raise ProxyError(f"a tensor named {tensor.name!r:.80}: give a str")
            if not is_whole(tensor.numel, -_MOST):
                raise ProxyError(f"tensor {tensor.name} has {tensor.numel!r} elements: give a whole number")
            if tensor.numel < 1:
                raise ProxyError(f"tensor {tensor.name} has {tensor.numel} elements: leave it out")
            if tensor.numel > _MOST:
                raise ProxyError(f"tensor {tensor.name} has {tensor.numel} elements: at most {_MOST}")
            if tensor.exponent is not None and not is_whole(tensor.exponent, EXPONENTS[0], EXPONENTS[-1]):
                raise ProxyError(f"tensor {tensor.name}: exponent {tensor.exponent!r}: -128 to 127, or None")
            keep_whole(tensor, "numel", "exponent")
        keep_whole(self, "shard_bytes")
        if len(self.numbers) != len(self.tensors):
            raise ProxyError("two tensors of one name: names in a table are unique")

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, int],
        exponent: int | Mapping[str, int] | None,
        *,
        shard_bytes: int = 1 << 20,
    ) -> Self:
        """The table of tensors with these numbers of elements, in forward order, and one exponent or one each."""
        return cls(
            tuple(
                Registered(name, numel, exponent[name] if isinstance(exponent, Mapping) else exponent)
                for name, numel in sizes.items()
            ),
            shard_bytes,
        )

    @cached_property
    def numbers(self) -> dict[str, int]:
        """A tensor's number by its name."""
        return {tensor.name: number for number, tensor in enumerate(self.tensors)}

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """All shards, by their numbers."""
        return tuple(
            Shard(number, start // _BYTES, stop // _BYTES)
            for number, tensor in enumerate(self.tensors)
            for start, stop in partition(_BYTES * tensor.numel, self.shard_bytes)
        )

    @cached_property
    def shards_of(self) -> tuple[range, ...]:
        """The numbers of each tensor's shards."""
        owners = [shard.tensor for shard in self.shards]
        firsts = [owners.index(number) for number in range(len(self.tensors))] + [len(owners)]
        return tuple(range(first, after) for first, after in pairwise(firsts))

    def number(self, name: str) -> int:
        """A tensor's number.

        Raises:
            ProxyError: nobody registered a tensor of that name.
        """
        try:
            return self.numbers[name]
        except KeyError:
            near = ", ".join(list(self.numbers)[:3])
            raise ProxyError(
                f"tensor {name!r} is not registered: the table has {len(self.tensors)} ({near}, ...); give it to every "
                "client before the first step"
            ) from None

    def group(self, shard: int, groups: int) -> int:
        """Which group of sync cores a shard belongs to; consecutive shards of a tensor to different ones."""
        return (zlib.crc32(self.tensors[self.shards[shard].tensor].name.encode()) + shard) % groups

    def facts(self) -> dict[str, Any]:
        """The table as JSON has it."""
        return {"shard_bytes": self.shard_bytes, "tensors": [[t.name, t.numel, t.exponent] for t in self.tensors]}

    @classmethod
    def from_facts(cls, facts: Any) -> Self:
        """The opposite of `facts`.

        Raises:
            ProxyError: these are not the facts of a table.
        """
        try:
            tensors = tuple(
                Registered(str(name), int(numel), None if exponent is None else int(exponent))
                for name, numel, exponent in facts["tensors"]
            )
            return cls(tensors, int(facts["shard_bytes"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ProxyError(f"a client sent a table that is none: {json.dumps(facts)[:80]}") from error

    def difference(self, other: TensorTable) -> str:
        """The first thing in which another table differs from this one, as "here ..., there ..."; empty: nothing."""
        if self.shard_bytes != other.shard_bytes:
            return f"shards of {self.shard_bytes} bytes, {other.shard_bytes} there"
        for number, (own, its) in enumerate(zip(self.tensors, other.tensors, strict=False)):
            if own != its:
                return f"tensor {number} is {_say(own)}, {_say(its)} there"
        if len(self.tensors) != len(other.tensors):
            return f"{len(self.tensors)} tensors, {len(other.tensors)} there"
        return ""


def _say(tensor: Registered) -> str:
    form = "fp32" if tensor.exponent is None else f"exponent {tensor.exponent}"
    return f"{tensor.name} ({tensor.numel} elements, {form})"
