"""The optimizer node of a training: holds the weights, streams layers down, updates from the sums."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from catchment.host.durable_file import replace_file
from catchment.host.layers import Homes, LayerTable, Timeline, TransferPort, WireType
from catchment.host.optimizer import NodeOptions, OptimizerNode, PassRecord
from catchment.host.optimizer.store import Geometry, Precision, Store, StoreError, StoreOptions
from catchment.host.optimizer.store.group_commit import GroupFolder
from catchment.host.optimizer.streaming import StreamingNode, StreamingOptions
from catchment.host.torch import layers_of, table_of
from catchment.sim.lab import events
from catchment.sim.lab.errors import LabError
from catchment.sim.training.model import Decoder, initialise
from catchment.sim.training.options import TrainingOptions

Tell = Callable[..., None]
WEIGHTS_FILE = "weights.pt"


def initial_layers(options: TrainingOptions) -> tuple[LayerTable, list[torch.Tensor]]:
    """The table of layers, and each layer's initial weights (flat fp32)."""
    model = Decoder(options.shape)
    initialise(model, options.seed)
    layers = layers_of(model)
    return table_of(layers), [layer.weights() for layer in layers]


def digest_of(layers: Iterable[torch.Tensor]) -> str:
    """SHA-256 over the bits of all layers in order."""
    summary = hashlib.sha256()
    for layer in layers:
        summary.update(layer.detach().reshape(-1).contiguous().numpy().tobytes())
    return summary.hexdigest()


def state_dict_of(table: LayerTable, layers: Iterable[torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights under the names and shapes of the model's own state_dict."""
    return {
        tensor.name: flat[tensor.span].view(tensor.shape).clone()
        for layer, flat in zip(table, layers, strict=True)
        for tensor in layer.tensors
    }


def open_store(options: TrainingOptions, table: LayerTable, weights: list[torch.Tensor]) -> Store:
    """A node's store in the output folder: a new one with these weights, or the one that an ended run left.

    Raises:
        LabError: that one holds another model, or has gone on meanwhile. StoreError: it cannot be opened or made.
    """
    places = options.store_places(table.home.root)
    if options.resume:
        store = Store.open(places, StoreOptions(threads=1))
        if store.geometry.table.digest != table.digest or store.state.trained != options.trained:
            store.close()
            raise LabError(f"the store in {options.output} is not the one that this run began with: start it again")
        return store
    parameters = Precision.BF16 if options.wire_type is WireType.BF16 else Precision.FP32
    geometry = Geometry(table, len(places), options.adam.kind, parameters)
    return Store.create(places, geometry, lambda layer: weights[layer], StoreOptions(threads=1), overwrite=True)


def rejoin_store(options: TrainingOptions, table: LayerTable, weights: list[torch.Tensor]) -> Store:
    """A node's store at the last step that all nodes have; a new one if there is none yet.

    Raises:
        StoreError: as GroupFolder.go_back, or it cannot be opened.
    """
    assert options.group_folder is not None
    group, root = GroupFolder(options.group_folder), table.home.root
    record = group.withdraw(root)
    if record is None:
        return open_store(replace(options, resume=False), table, weights)
    store = Store.open(options.store_places(root), StoreOptions(threads=1))
    try:
        group.go_back(store, record)
    except StoreError:
        store.close()
        raise
    return store


def serve(
    options: TrainingOptions,
    initial: tuple[LayerTable, list[torch.Tensor]],
    port: TransferPort,
    tell: Tell,
    root: int = 0,
    *,
    rejoin: bool = False,
) -> dict[str, Any]:
    """Run all passes from `initial` (see initial_layers) as optimizer node `root`; returns the last event's facts.

    Saves the trained weights of its part of the model, for `collect`. `rejoin`: somebody was lost; the node goes on
    from the last step that all have, as the others do.
    """
    homes = Homes.spread(initial[0], options.roots)
    table, weights = homes.part(root), homes.split(root, initial[1])
    timeline = Timeline(enabled=True)
    ends = [time.monotonic()]  # of the training steps

    def on_pass(record: PassRecord) -> None:
        if record.train:
            ends.append(time.monotonic())
        if record.skipped:
            tell(events.SKIPPED, index=first + record.index, tensors=list(record.skipped))

    stored: dict[str, int] = {}
    settings = NodeOptions(options.workers, options.adam, options.wire_type, rate=options.warmed).at(homes, root)
    with ExitStack() as exits:
        node: OptimizerNode | StreamingNode
        if options.out_of_core:
            opened = rejoin_store if rejoin else open_store
            store = exits.enter_context(opened(options, table, weights))
            options = replace(options, trained=store.state.trained)
            if rejoin:
                tell(events.REJOINED, trained=options.trained)
            streaming = StreamingOptions(
                options.arena, snapshot_every=options.evaluate, group=options.group_folder
            )  # fmt: skip
            node = StreamingNode(port, store, settings, streaming, timeline=timeline, on_pass=on_pass)
        else:
            node = OptimizerNode(port, table, weights, settings, timeline=timeline, on_pass=on_pass)
        first = options.first_pass
        node.run(options.passes[first:])
        if isinstance(node, StreamingNode):
            stored = {"states": store.space.plane_bytes, "arena": node.arena.size, "peak": node.arena.peak}
        final = [node.weights(layer.index) for layer in table]
    _save(final, _part_file(options, root))
    exponents = {layer.name: list(node.exponents(layer.index)) for layer in table}
    traced = ends[options.traced_step - options.trained - 1 :][:2]
    spans = [asdict(span) for span in timeline.during(*traced)] if len(traced) == 2 else []
    return {
        "digest": digest_of(final),
        "parameters": table.numel,
        "exponents": exponents,
        "timeline": spans,
        "stored": stored,
    }


def collect(options: TrainingOptions) -> str:
    """Put the nodes' parts together to the trained model, loadable with torch.load and Decoder.load_state_dict.

    Returns:
        SHA-256 of the whole model's weights.
    """
    table, _ = initial_layers(options)
    files = [_part_file(options, root) for root in range(options.roots)]
    layers = Homes.spread(table, options.roots).join([torch.load(file) for file in files])
    _save(state_dict_of(table, layers), options.output / WEIGHTS_FILE)
    for file in files:
        file.unlink()
    return digest_of(layers)


def _save(what: object, path: Path) -> None:
    """Write a file for torch.load; one that is there stands until the new one is whole."""
    written = io.BytesIO()
    torch.save(what, written)
    try:
        replace_file(path, [written.getbuffer()])
    except OSError as error:
        path.with_name(f"{path.name}.new").unlink(missing_ok=True)
        raise LabError(f"{path}: cannot be written: {error.strerror}") from error


def _part_file(options: TrainingOptions, root: int) -> Path:
    return options.output / f"part-{root}.pt"
