"""The optimizer node with several workers, on a switch in memory with the real number format."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from catchment.host import EndpointError
from catchment.host.layers import LayerSpec, LayerTable, Phase, TrainingError, WireType, message_size, open_message
from catchment.host.optimizer import Adam, NodeOptions, OptimizerNode, PassRecord, ScalingOptions
from catchment.sim.lab.memory_switch import MemoryPort, MemorySwitch

TABLE = LayerTable(
    (
        LayerSpec.of(0, "first", [("first.weight", (6, 4)), ("first.bias", (6,))]),
        LayerSpec.of(1, "second", [("second.weight", (5,))]),
        LayerSpec.of(2, "third", [("third.weight", (3, 3)), ("third.bias", (3,))]),
    )
)
Gradient = Callable[[int, int, int, int], np.ndarray[Any, Any]]
"""(pass, worker, layer, tensor) -> flat fp32 gradient."""


def _gradients(seed: int) -> Gradient:
    def gradient(number: int, worker: int, layer: int, tensor: int) -> np.ndarray[Any, Any]:
        generator = np.random.default_rng([seed, number, worker, layer, tensor])
        return generator.standard_normal(TABLE[layer].tensors[tensor].numel).astype(np.float32)

    return gradient


def _away_from_zero(gradient: Gradient) -> Gradient:
    """The same, 4 above or below: Adam divides by the gradient's size, so where workers cancel to nearly zero
    it would show the format's rounding step (2^-23 here) many times enlarged."""

    def shifted(number: int, worker: int, layer: int, tensor: int) -> np.ndarray[Any, Any]:
        values = gradient(number, worker, layer, tensor)
        return values + np.where(np.arange(values.size) % 2 == 0, 4, -4).astype(np.float32)

    return shifted


class Worker(threading.Thread):
    """Pulls and pushes as the hooks do; keeps the parameters of every pull."""

    def __init__(self, port: MemoryPort, index: int, passes: Sequence[bool], gradient: Gradient) -> None:
        super().__init__(daemon=True)
        self._port, self._index, self._passes, self._gradient = port, index, passes, gradient
        self.seen: list[tuple[int, int, Phase, tuple[int, ...], torch.Tensor]] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            for number, train in enumerate(self._passes):
                for layer in TABLE:
                    self._pull(layer)
                for layer in reversed(TABLE.layers) if train else ():
                    exponents = self._pull(layer)
                    for tensor, exponent in enumerate(exponents):
                        self._port.push(self._gradient(number, self._index, layer.index, tensor), exponent=exponent)
        except Exception as error:  # kept for the test
            self.error = error

    def _pull(self, layer: LayerSpec) -> tuple[int, ...]:
        buffer = np.zeros(message_size(layer, WireType.FP32), np.uint8)
        self._port.pull(buffer).wait(120)
        header, elements = open_message(buffer, layer, TABLE, WireType.FP32)
        self.seen.append((header.step, header.layer, header.phase, header.exponents, elements.clone()))
        return header.exponents


def _run(
    passes: Sequence[bool], gradient: Gradient, workers: int = 3, scaling: ScalingOptions | None = None
) -> tuple[OptimizerNode, list[Worker], list[PassRecord]]:
    fabric = MemorySwitch(workers)
    generator = torch.Generator().manual_seed(4)
    weights = [torch.randn(layer.numel, generator=generator) for layer in TABLE]
    records: list[PassRecord] = []
    options = NodeOptions(
        workers, Adam(lr=0.01), WireType.FP32, scaling or ScalingOptions(initial=5), rate=lambda step: 1 / (1 + step)
    )
    node = OptimizerNode(fabric.root(), TABLE, weights, options, on_pass=records.append)
    crew = [Worker(fabric.worker(index), index, passes, gradient) for index in range(workers)]
    for worker in crew:
        worker.start()
    try:
        node.run(passes)
    except BaseException as error:
        fabric.fail(EndpointError("over", kind="closed"))
        raise error
    finally:
        for worker in crew:
            worker.join(120)
    return node, crew, records


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_weights_follow_torch_adam_on_the_mean_gradient(workers: int, seed: int) -> None:
    passes = [False, True, True, False, True, False]
    gradient = _away_from_zero(_gradients(seed))
    node, crew, records = _run(passes, gradient, workers)
    generator = torch.Generator().manual_seed(4)
    master = [torch.randn(layer.numel, generator=generator).requires_grad_() for layer in TABLE]
    plain = torch.optim.Adam(master, lr=0.01, foreach=False)
    step = 0
    for number, train in enumerate(passes):
        if not train:
            continue
        for layer, parameter in zip(TABLE, master, strict=True):
            flat = np.zeros(layer.numel, np.float64)
            for tensor, spec in enumerate(layer.tensors):
                flat[spec.span] = sum(
                    gradient(number, w, layer.index, tensor).astype(np.float64) for w in range(workers)
                )
            parameter.grad = torch.from_numpy((flat / workers).astype(np.float32))
        plain.param_groups[0]["lr"] = 0.01 / (1 + step)
        plain.step()
        step += 1
    for layer, parameter in zip(TABLE, master, strict=True):
        assert torch.allclose(node.weights(layer.index), parameter, atol=2e-5)
        assert not torch.allclose(crew[0].seen[layer.index][4], parameter, atol=2e-5)
    assert [record.train for record in records] == passes
    assert all(record.skipped == () for record in records)


def test_order_steps_and_values_of_what_every_worker_receives(seed: int) -> None:
    passes = [True, False, True]
    node, crew, _ = _run(passes, _gradients(seed))
    forward = [(layer, Phase.FORWARD) for layer in (0, 1, 2)]
    backward = [(layer, Phase.BACKWARD) for layer in (2, 1, 0)]
    expected = [
        *((0, *entry) for entry in forward + backward), *((1, *entry) for entry in forward),
        *((2, *entry) for entry in forward + backward),
    ]  # fmt: skip
    for worker in crew:
        assert worker.error is None
        assert [entry[:3] for entry in worker.seen] == expected
        for mine, theirs in zip(worker.seen, crew[0].seen, strict=True):
            assert torch.equal(mine[4], theirs[4])
        by_place = {entry[:3]: entry[4] for entry in worker.seen}
        for layer in range(3):
            assert torch.equal(by_place[0, layer, Phase.FORWARD], by_place[0, layer, Phase.BACKWARD])
            assert not torch.equal(by_place[0, layer, Phase.FORWARD], by_place[1, layer, Phase.FORWARD])
            assert torch.equal(by_place[1, layer, Phase.FORWARD], by_place[2, layer, Phase.FORWARD])
    assert len(node.exponents(0)) == 2


def test_a_spike_skips_its_tensor_alone_and_raises_its_exponent() -> None:
    def spiky(number: int, worker: int, layer: int, tensor: int) -> np.ndarray[Any, Any]:
        values = np.full(TABLE[layer].tensors[tensor].numel, 0.5 + 0.01 * worker, np.float32)
        if (number, worker, layer, tensor) == (2, 1, 0, 1):
            values[3] = 4096.0
        return values

    passes = [True, True, True, True, False]
    _, crew, records = _run(passes, spiky)
    assert [record.skipped for record in records] == [(), (), ("first.bias",), (), ()]
    seen = {entry[:3]: entry for entry in crew[0].seen}
    bias, weight = TABLE[0].tensors[1].span, TABLE[0].tensors[0].span
    before, after = seen[2, 0, Phase.FORWARD][4], seen[3, 0, Phase.FORWARD][4]
    assert torch.equal(before[bias], after[bias])
    assert not torch.equal(before[weight], after[weight])
    exponents = [seen[number, 0, Phase.FORWARD][3] for number in range(5)]
    assert exponents[3][1] == exponents[2][1] + ScalingOptions().backoff
    assert exponents[3][0] == exponents[2][0]
    assert not torch.equal(seen[3, 0, Phase.FORWARD][4][bias], seen[4, 0, Phase.FORWARD][4][bias])


def test_gradients_that_are_never_finite_end_the_run_by_name() -> None:
    def poisoned(number: int, worker: int, layer: int, tensor: int) -> np.ndarray[Any, Any]:
        values = np.full(TABLE[layer].tensors[tensor].numel, 0.1, np.float32)
        if (worker, layer) == (2, 1):
            values[0] = np.nan
        return values

    with pytest.raises(TrainingError, match=r"second\.weight saturated 3 times"):
        _run([True] * 10, poisoned, scaling=ScalingOptions(patience=3))


def test_a_failing_network_ends_both_flows() -> None:
    fabric = MemorySwitch(2)
    weights = [torch.ones(layer.numel) for layer in TABLE]
    node = OptimizerNode(fabric.root(), TABLE, weights, NodeOptions(2))
    threading.Timer(0.05, fabric.fail, [EndpointError("switch gone", kind="stalled")]).start()
    with pytest.raises(EndpointError, match="switch gone"):
        node.run([True, True])


def test_weights_must_match_the_table() -> None:
    port = MemorySwitch(1).root()
    with pytest.raises(TrainingError, match="1 layers of weights"):
        OptimizerNode(port, TABLE, [torch.ones(30)], NodeOptions(1))
    with pytest.raises(TrainingError, match="first: 29 weights"):
        OptimizerNode(port, TABLE, [torch.ones(29), torch.ones(5), torch.ones(12)], NodeOptions(1))
