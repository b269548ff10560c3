"""Several optimizer nodes in one training: which of them holds which elements of which tensor.

Each node is an ordinary one that trains a smaller model: `part` is its table. Workers hold the whole table, and reach
each node by an endpoint of its own. Homes follow from the table and a few numbers, so every process makes the same.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import groupby, pairwise

import torch

from catchment.host.layers.errors import TrainingError
from catchment.host.layers.table import Home, LayerSpec, LayerTable, TensorSpec

MOST_ROOTS = 255
"""The most optimizer nodes: the PARAM message can number so many."""


@dataclass(frozen=True, slots=True, order=True)
class Piece:
    """Elements `start` to `stop` of a tensor (flat), and the number of the optimizer node that holds them."""

    layer: int
    tensor: int
    start: int
    stop: int
    root: int


@dataclass(frozen=True, slots=True)
class Share:
    """What one optimizer node holds of a layer: `layer` of its own table, whose tensors are `pieces`."""

    root: int
    layer: LayerSpec
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Homes:
    """A home for every element of a model; `spread` makes one.

    Attributes:
        table: of the whole model.
        roots: number of optimizer nodes.
        pieces: by layer, tensor and first element; together they are the model.
    """

    table: LayerTable
    roots: int
    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        _check_roots(self.roots)
        found = {key: list(group) for key, group in groupby(sorted(self.pieces), lambda p: (p.layer, p.tensor))}
        for layer in self.table:
            for number, tensor in enumerate(layer.tensors):
                _check_cover(tensor, found.pop((layer.index, number), []), self.roots)
        if found:
            raise TrainingError(f"homes name tensor {min(found)[1]} of layer {min(found)[0]}, which the model lacks")
        idle = set(range(self.roots)) - {piece.root for piece in self.pieces}
        if idle:
            raise TrainingError(
                f"optimizer node {min(idle)} would hold nothing: {self.roots} nodes for {len(self.pieces)} pieces of "
                "tensors; take fewer nodes, or cut the tensors into smaller pieces"
            )

    @staticmethod
    def spread(table: LayerTable, roots: int, *, rates: Sequence[float] = (), cut: int | None = None) -> Homes:
        """Homes that give each node its share of every layer, as nearly as whole tensors permit.

        Args:
            table: of the whole model.
            roots: number of optimizer nodes.
            rates: of the nodes' links, in any unit (default: equal); a node gets elements in proportion.
            cut: most elements of a piece: larger tensors are cut into equal ones. A piece has an exponent of its own,
                so its gradients are rounded otherwise than the whole tensor's; None: tensors stay whole.

        Raises:
            TrainingError: too few or too many nodes, a rate or `cut` is not positive, or a node would hold nothing.
        """
        _check_roots(roots)
        speeds = [1.0] * roots if not rates else [float(rate) for rate in rates]
        if len(speeds) != roots or not all(0 < speed < float("inf") for speed in speeds):
            raise TrainingError(f"rates {list(rates)} for {roots} optimizer nodes: give each a positive number")
        if cut is not None and cut < 1:
            raise TrainingError(f"pieces of {cut} elements: at least 1")
        loads = [0] * roots
        pieces: list[Piece] = []
        for layer in table:
            bounds = [
                (number, *bound) for number, tensor in enumerate(layer.tensors) for bound in _cuts(tensor.numel, cut)
            ]
            for number, start, stop in sorted(bounds, key=lambda b: (b[1] - b[2], b)):  # the largest first
                root = min(range(roots), key=lambda r: ((loads[r] + stop - start) / speeds[r], r))
                loads[root] += stop - start
                pieces.append(Piece(layer.index, number, start, stop, root))
        return Homes(table, roots, tuple(sorted(pieces)))

    @property
    def plan(self) -> int:
        """CRC-32 of all homes; 0 where there is one optimizer node."""
        facts = json.dumps([self.table.digest, [astuple(piece) for piece in self.pieces]], separators=(",", ":"))
        return zlib.crc32(facts.encode()) if self.roots > 1 else 0

    def part(self, root: int) -> LayerTable:
        """The table of optimizer node `root`: what it holds of each layer, layers of which it holds nothing left out.

        A piece that is a whole tensor keeps name and shape; any other is flat and named `tensor[start:stop]`.
        """
        layers = tuple(share.layer for share in self._shares_at[self._checked(root)])
        return LayerTable(layers, Home(root, self.roots, self.plan))

    def numbers(self, root: int) -> tuple[int, ...]:
        """Numbers in the whole model of the layers of `part(root)`."""
        return tuple(share.pieces[0].layer for share in self._shares_at[self._checked(root)])

    def shares(self, layer: int) -> tuple[Share, ...]:
        """What each node holds of a layer of the whole model, by the number of the node."""
        return tuple(s for shares in self._shares_at for s in shares if s.pieces[0].layer == layer)

    def names(self, root: int, tensors: Collection[str]) -> tuple[str, ...]:
        """The names that the pieces of these tensors of the model have at a node."""
        return tuple(
            spec.name
            for share in self._shares_at[self._checked(root)]
            for spec, piece in zip(share.layer.tensors, share.pieces, strict=True)
            if self.table[piece.layer].tensors[piece.tensor].name in tensors
        )

    def split(self, root: int, layers: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """A node's weights, flat, one tensor a layer of `part(root)`, from those of the whole model."""
        return [
            torch.cat([layers[piece.layer].reshape(-1)[self.span(piece)] for piece in share.pieces])
            for share in self._shares_at[self._checked(root)]
        ]

    def join(self, parts: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
        """The opposite of `split`: the whole model's layers from those of all nodes, in order."""
        whole = [torch.empty(layer.numel) for layer in self.table]
        for shares, flats in zip(self._shares_at, parts, strict=True):
            for share, flat in zip(shares, flats, strict=True):
                for spec, piece in zip(share.layer.tensors, share.pieces, strict=True):
                    whole[piece.layer][self.span(piece)] = flat[spec.span]
        return whole

    def span(self, piece: Piece) -> slice:
        """A piece's elements in its layer's flat vector."""
        offset = self.table[piece.layer].tensors[piece.tensor].offset
        return slice(offset + piece.start, offset + piece.stop)

    def _checked(self, root: int) -> int:
        if not 0 <= root < self.roots:
            raise TrainingError(f"optimizer node {root} of {self.roots}: they count from 0")
        return root

    @cached_property
    def _shares_at(self) -> tuple[tuple[Share, ...], ...]:
        return tuple(tuple(self._held_by(root)) for root in range(self.roots))

    def _held_by(self, root: int) -> list[Share]:
        shares: list[Share] = []
        held = [piece for piece in sorted(self.pieces) if piece.root == root]
        for number, group in groupby(held, lambda piece: piece.layer):
            pieces = tuple(group)
            layer = self.table[number]
            shapes = [_named(layer.tensors[piece.tensor], piece) for piece in pieces]
            shares.append(Share(root, LayerSpec.of(len(shares), layer.name, shapes), pieces))
        return shares


def _check_roots(roots: int) -> None:
    if not 1 <= roots <= MOST_ROOTS:
        raise TrainingError(f"{roots} optimizer nodes: 1 to {MOST_ROOTS}")


def _named(tensor: TensorSpec, piece: Piece) -> tuple[str, tuple[int, ...]]:
    if piece.stop - piece.start == tensor.numel:
        return tensor.name, tensor.shape
    return f"{tensor.name}[{piece.start}:{piece.stop}]", (piece.stop - piece.start,)


def _cuts(numel: int, most: int | None) -> list[tuple[int, int]]:
    """Bounds of the fewest pieces of at most `most` elements, equal to within one element."""
    count = 1 if most is None else -(-numel // most)
    bounds = [numel * at // count for at in range(count + 1)]
    return list(pairwise(bounds))


def _check_cover(tensor: TensorSpec, pieces: Sequence[Piece], roots: int) -> None:
    at = 0
    for piece in pieces:
        if not 0 <= piece.root < roots:
            raise TrainingError(f"tensor {tensor.name} has its home at optimizer node {piece.root} of {roots}")
        if piece.start < at:
            raise TrainingError(f"elements {piece.start} to {at} of tensor {tensor.name} have two homes")
        if piece.start > at or piece.stop <= piece.start:
            break
        at = piece.stop
    if at != tensor.numel:
        raise TrainingError(f"elements of tensor {tensor.name} from {at} on have no home, or are not its own")
