"""How many transfers are in flight, and what is kept while they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from catchment.host import EndpointError
from catchment.host.layers import (
    LayerSpec,
    LayerTable,
    ParamHeader,
    Pass,
    Phase,
    Timeline,
    TrainingError,
    WireType,
    pack_message,
)
from catchment.host.torch.pulls import PullAhead
from catchment.host.torch.pushes import PushBehind

TABLE = LayerTable(tuple(LayerSpec.of(i, f"layer{i}", [("w", (8 + i,)), ("b", (3,))]) for i in range(5)))


class Pending:
    """Done when the test says so; `wait` notes that somebody had to wait."""

    flags, max_abs, latency = 0, 0.0, 0.25

    def __init__(self, log: list[str], name: str, error: Exception | None = None) -> None:
        self.log, self.name, self.error, self.finished = log, name, error, False

    def wait(self, timeout: float | None = None) -> None:
        self.log.append(f"wait {self.name}")
        self.finished = True
        if self.error is not None:
            raise self.error

    def done(self) -> bool:
        return self.finished


class SlowPort:
    """Takes everything, finishes nothing by itself."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.pulls: list[tuple[np.ndarray[Any, Any], Pending]] = []
        self.pushes: list[tuple[Any, Pending]] = []
        self.error: Exception | None = None

    def pull(self, array: Any) -> Pending:
        self.pulls.append((array, Pending(self.log, f"pull {len(self.pulls)}", self.error)))
        return self.pulls[-1][1]

    def push(self, array: Any, exponent: int | None = None) -> Pending:
        self.pushes.append((array, Pending(self.log, f"push {len(self.pushes)}", self.error)))
        return self.pushes[-1][1]


def _arrive(port: SlowPort, number: int, layer: int, phase: Phase, *, last: bool = False) -> None:
    header = ParamHeader(layer, 0, phase, (0, 0), last)
    message = pack_message(header, TABLE, WireType.BF16, torch.full((TABLE[layer].numel,), float(number)))
    port.pulls[number][0][:] = message


@pytest.mark.parametrize("depth", [1, 2, 4, 9])
def test_so_many_pulls_are_in_flight_and_no_more(depth: int) -> None:
    port = SlowPort()
    pulls = PullAhead(port, TABLE, WireType.BF16, depth, Timeline())
    order = [(i, Phase.FORWARD) for i in range(5)] + [(i, Phase.BACKWARD) for i in reversed(range(5))]
    assert len(port.pulls) == min(depth, 5)  # the kind of the first pass is not known yet
    pulls.begin_pass(Pass.TRAIN)
    for taken, (layer, phase) in enumerate(order):
        assert len(port.pulls) - taken <= depth
        assert len(port.pulls) - taken == min(depth, len(order) - taken + (5 if taken else 0))
        _arrive(port, taken, layer, phase)
        header, elements = pulls.take(layer, phase)
        assert (header.layer, header.phase) == (layer, phase)
        assert torch.equal(elements, torch.full((TABLE[layer].numel,), float(taken), dtype=torch.bfloat16))
    assert len(port.pulls) == len(order) + min(depth, 5)
    assert pulls.buffered_bytes == sum(len(array) for array, _ in port.pulls[len(order) :])


def test_nothing_is_pulled_beyond_the_last_pass() -> None:
    port = SlowPort()
    pulls = PullAhead(port, TABLE, WireType.BF16, 3, Timeline())
    pulls.begin_pass(Pass.FORWARD)
    for layer in range(5):
        _arrive(port, layer, layer, Phase.FORWARD, last=True)
        pulls.take(layer, Phase.FORWARD)
    assert len(port.pulls) == 5
    with pytest.raises(TrainingError, match="the last"):
        pulls.begin_pass(Pass.TRAIN)
    with pytest.raises(TrainingError, match="outside of a pass"):
        pulls.take(0, Phase.FORWARD)


def test_a_failed_pull_is_the_endpoints_error() -> None:
    port = SlowPort()
    port.error = EndpointError("nothing moves", kind="stalled")
    pulls = PullAhead(port, TABLE, WireType.BF16, 2, Timeline())
    pulls.begin_pass(Pass.TRAIN)
    with pytest.raises(EndpointError, match="nothing moves"):
        pulls.take(0, Phase.FORWARD)


def test_gradients_of_so_many_layers_may_wait() -> None:
    port = SlowPort()
    timeline = Timeline(enabled=True)
    pushes = PushBehind(port, 2, timeline)
    layer_bytes = []
    for index in (4, 3, 2):
        gradients = [torch.ones(8 + index), torch.ones(3)]
        layer_bytes.append(4 * (8 + index + 3))
        pushes.push(TABLE[index], gradients, (1, 2))
        assert pushes.held_bytes == sum(layer_bytes[-2:])
    assert port.log == ["wait push 0", "wait push 1"]  # the third layer had to wait for the first
    port.pushes[2][1].finished = port.pushes[3][1].finished = True
    pushes.push(TABLE[1], [torch.ones(9), torch.ones(3)], (1, 2))
    assert pushes.held_bytes == layer_bytes[-1] + 4 * 12
    pushes.wait()
    assert pushes.held_bytes == 0
    spans = timeline.during(0.0, float("inf"))
    assert [span.layer for span in spans] == [4, 3, 2, 1]
    assert all(span.end - span.start == pytest.approx(0.25) for span in spans)


def test_a_push_sends_what_the_gradient_was_whatever_its_layout() -> None:
    port = SlowPort()
    gradient = torch.arange(12.0).view(3, 4).t()
    PushBehind(port, 1, Timeline()).push(TABLE[0], [gradient, torch.zeros(3)], (0, 0))
    assert port.pushes[0][0].tolist() == gradient.reshape(-1).tolist()
    assert port.pushes[0][0].is_contiguous()


def test_a_failed_push_is_the_endpoints_error() -> None:
    port = SlowPort()
    port.error = EndpointError("nobody answers", kind="unreachable")
    pushes = PushBehind(port, 4, Timeline())
    pushes.push(TABLE[0], [torch.ones(8), torch.ones(3)], (0, 0))
    with pytest.raises(EndpointError, match="nobody answers"):
        pushes.wait()
