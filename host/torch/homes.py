"""A worker's transfers with all optimizer nodes of its training: each holds a part of every layer, or of some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from catchment.host.layers import Homes, Pass, Phase, Share, Timeline, TrainingError, TransferPort, WireType
from catchment.host.torch.pulls import PullAhead
from catchment.host.torch.pushes import PushBehind


@dataclass(frozen=True, slots=True)
class Arrived:
    """A layer's parameters as they came.

    Attributes:
        loss_scale: of the pass.
        exponents: by share of the layer, then by its tensors.
        parts: (span of the flat layer, its elements in the wire type).
    """

    loss_scale: float
    exponents: tuple[tuple[int, ...], ...]
    parts: tuple[tuple[slice, torch.Tensor], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of what came."""
        return sum(elements.numel() * elements.element_size() for _, elements in self.parts)

    def copy_to(self, flat: torch.Tensor) -> None:
        """Put everything into the layer's flat vector, widened to its type."""
        for span, elements in self.parts:
            flat[span].copy_(elements)


@dataclass(frozen=True, slots=True)
class _Route:
    """A share of a layer, and its runs of elements: (span in the flat layer, span in the node's message)."""

    share: Share
    runs: tuple[tuple[slice, slice], ...]


class ModelTransfers:
    """Pulls and pushes of whole layers. Every node has its own order of messages, exponents and window."""

    def __init__(
        self,
        ports: Sequence[TransferPort],
        homes: Homes,
        wire: WireType,
        *,
        prefetch: int,
        pushes: int,
        timeline: Timeline,
    ) -> None:
        """Post the first pulls at every port; `ports`: by the number of the node."""
        self._routes = [
            tuple(_Route(share, _runs(homes, share)) for share in homes.shares(layer.index)) for layer in homes.table
        ]
        numbers = [homes.numbers(root) for root in range(homes.roots)]
        self._pulls = [
            PullAhead(port, homes.part(root), wire, prefetch, timeline, numbers[root])
            for root, port in enumerate(ports)
        ]
        self._pushes = [PushBehind(port, pushes, timeline, numbers[root]) for root, port in enumerate(ports)]
        self._scales: dict[int, float] = {}  # of this pass, by node
        self._trained: dict[int, int] = {}  # steps that its parameters have had, by node

    @property
    def buffered_bytes(self) -> int:
        """Bytes of the receive buffers now in flight."""
        return sum(pulls.buffered_bytes for pulls in self._pulls)

    @property
    def held_bytes(self) -> int:
        """Bytes of gradients not yet acknowledged."""
        return sum(pushes.held_bytes for pushes in self._pushes)

    def trained(self) -> int:
        """Training passes that the parameters of the next pass have had; waits for the first of them from every node.

        Raises:
            TrainingError: the nodes are at different steps; as PullAhead.trained. EndpointError: a pull failed.
        """
        self._trained = {root: pulls.trained() for root, pulls in enumerate(self._pulls)}
        self._check_step()
        return self._trained[0]

    def _check_step(self) -> None:
        if len(set(self._trained.values())) > 1:
            raise TrainingError(
                "the optimizer nodes are at different steps: "
                + ", ".join(f"node {root} at {trained}" for root, trained in sorted(self._trained.items()))
                + "; bring all to the step of their group's record (`catchment proxy restore`)"
            )

    def begin_pass(self, kind: Pass) -> None:
        """Start the next pass at all nodes; errors as PullAhead.begin_pass."""
        self._scales.clear()
        self._trained.clear()
        for pulls in self._pulls:
            pulls.begin_pass(kind)

    def take(self, layer: int, phase: Phase) -> Arrived:
        """Wait for a layer's parameters from every node that holds some.

        Raises:
            TrainingError: as PullAhead.take; or the nodes have different loss scales, or are at different steps.
            EndpointError: a pull failed.
        """
        exponents: list[tuple[int, ...]] = []
        parts: list[tuple[slice, torch.Tensor]] = []
        for route in self._routes[layer]:
            header, elements = self._pulls[route.share.root].take(route.share.layer.index, phase)
            self._scales[route.share.root] = header.loss_scale
            self._trained[route.share.root] = header.trained
            exponents.append(header.exponents)
            parts += [(to, elements[source]) for to, source in route.runs]
        self._check_step()
        if len(set(self._scales.values())) > 1:
            raise TrainingError(
                f"the optimizer nodes have different loss scales: {self._scales} (node: scale); give all the same"
            )
        return Arrived(header.loss_scale, tuple(exponents), tuple(parts))

    def push(self, layer: int, gradients: Sequence[torch.Tensor], exponents: Sequence[Sequence[int]]) -> None:
        """Push a layer's gradients (fp32, one a tensor), a piece to its node, with the exponents that `take` gave."""
        for route, own in zip(self._routes[layer], exponents, strict=True):
            pieces = [gradients[piece.tensor].reshape(-1)[piece.start : piece.stop] for piece in route.share.pieces]
            self._pushes[route.share.root].push(route.share.layer, pieces, own)

    def wait(self) -> None:
        """Block until every gradient pushed so far is acknowledged; raises EndpointError."""
        for pushes in self._pushes:
            pushes.wait()


def _runs(homes: Homes, share: Share) -> tuple[tuple[slice, slice], ...]:
    runs: list[tuple[slice, slice]] = []
    for tensor, piece in zip(share.layer.tensors, share.pieces, strict=True):
        to, source = homes.span(piece), tensor.span
        if runs and runs[-1][0].stop == to.start:
            to, source = slice(runs[-1][0].start, to.stop), slice(runs.pop()[1].start, source.stop)
        runs.append((to, source))
    return tuple(runs)
