"""Pulls of layers ahead of their use, in the one order that both ends know."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from catchment.host.layers import (
    Completion,
    LayerTable,
    ParamHeader,
    Pass,
    Phase,
    Timeline,
    TrainingError,
    TransferPort,
    WireType,
    message_size,
    open_message,
)


@dataclass(frozen=True, slots=True)
class _Posted:
    layer: int
    phase: Phase
    buffer: npt.NDArray[np.uint8]
    started: float
    completion: Completion


class PullAhead:
    """Keeps `depth` pulls in flight. A pass is every layer forward, and, in training, every layer backward.

    The next pass's forward is planned as soon as a message of this pass says that it is not the last one, so the
    first layers of a step arrive while the previous step ends, and nothing is ever pulled that is not sent.
    """

    def __init__(  # noqa: PLR0917
        self,
        port: TransferPort,
        table: LayerTable,
        wire: WireType,
        depth: int,
        timeline: Timeline,
        numbers: Sequence[int] | None = None,
    ) -> None:
        """Post the first `depth` pulls at once (at least 1); `numbers`: each layer's in the timeline (default: own)."""
        if depth < 1:
            raise TrainingError(f"prefetch depth {depth}: at least one pull must be in flight")
        self._port = port
        self._table = table
        self._wire = wire
        self._depth = depth
        self._timeline = timeline
        self._numbers = range(len(table)) if numbers is None else numbers
        self._planned: deque[tuple[int, Phase]] = deque()
        self._posted: deque[_Posted] = deque()
        self._pass = -1
        self._kind = Pass.FORWARD
        self._next_planned = False
        self._last = False
        self._plan_forward()
        self._post()

    @property
    def buffered_bytes(self) -> int:
        """Bytes of the receive buffers now in flight."""
        return sum(len(posted.buffer) for posted in self._posted)

    def trained(self) -> int:
        """Training passes that the next layer's parameters have had; waits for them.

        Raises:
            TrainingError: the message does not fit, or no pass follows. EndpointError: the pull failed.
        """
        if not self._posted:
            raise TrainingError("the optimizer node has no further pass: there is no step to ask for")
        head = self._posted[0]
        head.completion.wait()
        return open_message(head.buffer, self._table[head.layer], self._table, self._wire)[0].trained

    def begin_pass(self, kind: Pass) -> None:
        """Start the next pass; raises TrainingError after the last one or inside an unfinished one."""
        if self._last:
            raise TrainingError("the optimizer node said that the previous pass was the last: there is nothing to pull")
        if self._pass >= 0 and not self._next_planned:
            raise TrainingError("a pass began before the first layer of the previous one arrived")
        self._pass += 1
        self._next_planned = False
        self._kind = kind
        if kind is not Pass.FORWARD:
            self._planned.extend((layer.index, Phase.BACKWARD) for layer in reversed(self._table.layers))
            self._post()

    def take(self, layer: int, phase: Phase) -> tuple[ParamHeader, torch.Tensor]:
        """Wait for `layer` and give its header and parameters (flat, wire type).

        Raises:
            TrainingError: another layer is next, or the message is not of this pass. EndpointError: the pull failed.
        """
        if not self._posted:
            raise TrainingError(f"{self._say(layer, phase)} was used outside of a pass")
        head = self._posted[0]
        if (head.layer, head.phase) != (layer, phase):
            raise TrainingError(
                f"the model used {self._say(layer, phase)}, but {self._say(head.layer, head.phase)} is next: list "
                "layers= in the order in which forward runs them, each once, one forward and one backward per step"
            )
        with self._timeline.span("wait", self._numbers[layer]):
            head.completion.wait()
        self._timeline.add("pull", self._numbers[layer], head.started, head.started + head.completion.latency)
        self._posted.popleft()
        header, elements = open_message(head.buffer, self._table[layer], self._table, self._wire)
        if (header.step, header.phase) != (self._pass, phase):
            raise TrainingError(
                f"{self._say(layer, phase)} of pass {self._pass}: the message is {header.phase.name.lower()} of pass "
                f"{header.step}: worker and optimizer node run different schedules"
            )
        if self._kind is not Pass.FORWARD and header.accumulate is not (self._kind is Pass.ACCUMULATE):
            raise TrainingError(
                f"pass {self._pass} is one of {self._kind.name} here, but not at the optimizer node: it accumulates "
                "gradients where node.run() has Pass.ACCUMULATE and every worker says `with network.accumulate():`"
            )
        self._last = header.last_pass
        if not self._next_planned and not header.last_pass:
            self._plan_forward()
            self._next_planned = True
        self._post()
        return header, elements

    def _say(self, layer: int, phase: Phase) -> str:
        return f"layer {layer} ({self._table[layer].name}) {phase.name.lower()}"

    def _plan_forward(self) -> None:
        self._planned.extend((layer.index, Phase.FORWARD) for layer in self._table)

    def _post(self) -> None:
        while self._planned and len(self._posted) < self._depth:
            layer, phase = self._planned.popleft()
            buffer = np.empty(message_size(self._table[layer], self._wire), dtype=np.uint8)
            self._posted.append(_Posted(layer, phase, buffer, time.monotonic(), self._port.pull(buffer)))
