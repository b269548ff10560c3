"""A small training through a store, the same bits every time: gradients follow from step, worker and tensor alone.

As a program it trains until it is killed: python out_of_core.py STEPS KILL_AT LINES PLACE...
It says when a pass is done; after so many LINES (-1: any number) it says no more before its input has ended.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from catchment.host import EndpointError, _optimizer
from catchment.host.layers import LayerSpec, LayerTable, ParamHeader, Pass, WireType, message_size, open_message
from catchment.host.optimizer import Adam, NodeOptions, OptimizerNode, PassRecord, ScalingOptions, UpdateRule
from catchment.host.optimizer.store import Geometry, Precision, Store, StoreOptions, page_aligned
from catchment.host.optimizer.streaming import StreamingNode, StreamingOptions
from catchment.sim.lab.memory_switch import MemoryPort, MemorySwitch

TABLE = LayerTable(
    (
        LayerSpec.of(0, "embedding", [("embedding.weight", (90, 50))]),
        LayerSpec.of(1, "block.0", [("block.0.weight", (64, 64)), ("block.0.bias", (64,)), ("block.0.scale", ())]),
        LayerSpec.of(2, "block.1", [("block.1.weight", (2048, 3)), ("block.1.bias", (5,))]),
        LayerSpec.of(3, "head", [("head.weight", (7, 9))]),
    )
)
WORKERS = 2


def gradient(step: int, worker: int, layer: int, tensor: int) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng([7, step, worker, layer, tensor])
    values = generator.standard_normal(TABLE[layer].tensors[tensor].numel)
    if (step, worker, layer, tensor) == (2, 1, 1, 1):
        values[3] = 1e6  # saturates: the tensor is skipped in this step
    return values.astype(np.float32)


def in_half(values: np.ndarray[Any, Any], scale: float) -> np.ndarray[Any, Any]:
    """What a worker that computes in fp16 makes of gradients, with its loss multiplied by `scale`."""
    with np.errstate(over="ignore"):
        return (values * np.float32(scale)).astype(np.float16).astype(np.float32)


def initial(layer: int) -> torch.Tensor:
    return torch.randn(TABLE[layer].numel, generator=torch.Generator().manual_seed(layer))


class Worker(threading.Thread):
    """Pulls and pushes as the hooks do, from training step `first` on; `half`: it computes in fp16."""

    def __init__(  # noqa: PLR0917
        self,
        port: MemoryPort,
        index: int,
        passes: Sequence[bool | Pass],
        first: int,
        wire: WireType,
        half: bool = False,
    ) -> None:
        super().__init__(daemon=True)
        self._half = half
        self._port, self._index, self._passes, self._first, self._wire = port, index, passes, first, wire
        self.forward: list[torch.Tensor] = []

    def run(self) -> None:
        step = self._first
        try:
            for kind in map(Pass, self._passes):
                for layer in TABLE:
                    self.forward.append(self._pull(layer)[1])
                for layer in reversed(TABLE.layers) if kind is not Pass.FORWARD else ():
                    header = self._pull(layer)[0]
                    assert header.accumulate is (kind is Pass.ACCUMULATE)
                    if header.accumulate:
                        continue
                    for tensor, exponent in enumerate(header.exponents):
                        values = gradient(step, self._index, layer.index, tensor)
                        if self._half:
                            values = in_half(values, header.loss_scale)
                        self._port.push(values, exponent=exponent)
                step += kind is Pass.TRAIN
        except EndpointError:
            return

    def _pull(self, layer: LayerSpec) -> tuple[ParamHeader, torch.Tensor]:
        buffer = np.zeros(message_size(layer, self._wire), np.uint8)
        self._port.pull(buffer).wait(60)
        header, elements = open_message(buffer, layer, TABLE, self._wire)
        return header, elements.clone()


def create(
    places: Sequence[Path],
    rule: UpdateRule | None = None,
    moments: Precision = Precision.FP32,
    parameters: Precision = Precision.BF16,
    **options: Any,
) -> Store:
    kind = (Adam() if rule is None else rule).kind
    return Store.create(
        places, Geometry(TABLE, len(places), kind, parameters, moments), initial, StoreOptions(**options)
    )


def node_options(rule: UpdateRule | None = None, wire: WireType = WireType.BF16) -> NodeOptions:
    return NodeOptions(
        WORKERS,
        Adam(lr=0.01, decay=0.01) if rule is None else rule,
        wire,
        ScalingOptions(initial=5, history=4),
        rate=lambda step: 1 / (1 + step),
    )


def train(
    store: Store,
    steps: int,
    *,
    options: NodeOptions | None = None,
    streaming: StreamingOptions | None = None,
    passes: Sequence[bool | Pass] | None = None,
    on_pass: Callable[[PassRecord], None] | None = None,
    half: bool = False,
) -> tuple[StreamingNode, list[Worker]]:
    """Go on until the store has `steps` training passes (or through `passes`)."""
    options = node_options() if options is None else options
    fabric = MemorySwitch(WORKERS)
    first = store.state.trained
    chosen = [True] * (steps - first) if passes is None else passes
    node = StreamingNode(fabric.root(), store, options, streaming, on_pass=on_pass)
    crew = [Worker(fabric.worker(index), index, chosen, first, options.wire, half) for index in range(WORKERS)]
    for worker in crew:
        worker.start()
    try:
        node.run(chosen)
    finally:
        fabric.fail(EndpointError("over", kind="closed"))
        for worker in crew:
            worker.join(60)
    return node, crew


def train_in_memory(
    passes: Sequence[bool | Pass], options: NodeOptions, state: Mapping[str, Any] | None = None
) -> tuple[OptimizerNode, list[Worker], list[PassRecord]]:
    """The same by the node in memory; from `state` on, if there is one."""
    fabric, records = MemorySwitch(WORKERS), []
    node = OptimizerNode(fabric.root(), TABLE, [initial(i) for i in range(len(TABLE))], options, on_pass=records.append)
    if state is not None:
        node.load_state_dict(state)
    crew = [Worker(fabric.worker(index), index, passes, node.trained, options.wire) for index in range(WORKERS)]
    for worker in crew:
        worker.start()
    node.run(passes)
    for worker in crew:
        worker.join(60)
    return node, crew, records


def digest(store: Store) -> str:
    """Everything that a training goes on from."""
    summary = hashlib.sha256()
    for layer in store.geometry.table:
        version = store.version(layer.index)
        summary.update(repr((version.steps, version.notes)).encode())
        for section in store.geometry.sections:
            memory = page_aligned(store.geometry.section_bytes(layer.index, section))
            store.read(version, layer.index, section, memory).wait()
            store.verify(version, layer.index, section, store.digests(layer.index, section, memory))
            summary.update(memory.tobytes())
    return summary.hexdigest()


def main() -> None:
    steps, kill_at, left = map(int, sys.argv[1:4])
    places = [Path(place) for place in sys.argv[4:]]
    torch.set_num_threads(1)

    def say(*what: object) -> None:
        nonlocal left
        if left == 0:
            sys.stdin.read()
        left -= 1
        print(*what, flush=True)

    with Store.open(places, StoreOptions(threads=1, faults=_optimizer.Faults(after=kill_at))) as store:
        say("open", store.state.trained)
        train(store, steps, on_pass=lambda record: say("pass", record.index))
        say("done", digest(store))


if __name__ == "__main__":
    main()
