"""Stores of even layers and trainings on them, for what bench/optimizer.py measures."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from catchment.host.layers import LayerSpec, LayerTable, Timeline, TransferPort
from catchment.host.optimizer import NodeOptions
from catchment.host.optimizer.store import Geometry, Store, StoreOptions
from catchment.host.optimizer.streaming import StreamingNode, StreamingOptions
from catchment.host.optimizer.streaming.task import Buffers, Work

READ, WRITTEN = 16, 14
"""Bytes of disk a parameter takes in a step of Adam: 2 + 2 + 12 read, 14 written."""


def table_of(layers: int, numel: int) -> LayerTable:
    """A model of equal layers."""
    return LayerTable(tuple(LayerSpec.of(i, f"layer{i}", [(f"layer{i}.weight", (numel,))]) for i in range(layers)))


@contextmanager
def store_in(folder: Path, table: LayerTable, devices: int, **options: Any) -> Iterator[Store]:
    """A new store of `table` on files in `folder`, which go afterwards."""
    places = [folder / f"device{index}" for index in range(devices)]
    try:
        Store.create(places, Geometry(table, devices), lambda i: torch.randn(table[i].numel)).close()
        with Store.open(places, StoreOptions(**options)) as store:
            yield store
    finally:
        for place in places:
            place.unlink(missing_ok=True)


def arena_of(store: Store, layers: int) -> int:
    """Bytes for `layers` of the first layer."""
    return layers * Buffers.size(store.geometry, 0, Work.BACKWARD)


def bytes_moved(store: Store) -> int:
    """Sum over all devices since the store was opened."""
    counted = ("parameter_read_bytes", "state_read_bytes", "state_write_bytes")
    return sum(stats[name] for stats in store.stats().values() for name in counted)


def step_seconds(
    store: Store, port: TransferPort, steps: int, *, arena_layers: int = 4, timeline: Timeline | None = None
) -> list[float]:
    """Seconds of each step but the first, from end to end."""
    ends: list[float] = []
    streaming = StreamingOptions(arena=arena_of(store, arena_layers))
    node = StreamingNode(
        port, store, NodeOptions(1), streaming, timeline=timeline, on_pass=lambda _: ends.append(time.monotonic())
    )
    node.run([True] * steps)
    return between(ends)


def between(moments: list[float]) -> list[float]:
    """Differences from each to the next."""
    return [later - earlier for earlier, later in itertools.pairwise(moments)]
