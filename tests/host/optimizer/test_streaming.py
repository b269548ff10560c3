"""The out-of-core node: the bits of the one in memory, whatever the devices, in bounded memory and in order."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from out_of_core import (
    TABLE,
    WORKERS,
    Worker,
    create,
    digest,
    gradient,
    initial,
    node_options,
    train,
    train_in_memory,
)

from catchment.host import EndpointError
from catchment.host.layers import LayerSpec, LayerTable, Pass, Timeline, TrainingError, WireType, message_size
from catchment.host.optimizer import Adam, NodeOptions, PassRecord, Sgd, UpdateRule
from catchment.host.optimizer.store import Geometry, Precision, Store, StoreOptions
from catchment.host.optimizer.streaming import Arena, Clip, Clipping, StreamingNode, StreamingOptions
from catchment.host.optimizer.streaming.task import Buffers, Work
from catchment.sim.golden import optimizers
from catchment.sim.lab.memory_switch import MemorySwitch

sys.path.insert(0, str(Path(__file__).parents[1]))

from cluster import luwu

PASSES = [False, True, True, False, True, True]


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("wire", [WireType.BF16, WireType.FP32])
@pytest.mark.parametrize("rule", [None, Sgd(lr=0.05, decay=0.01, nesterov=True)], ids=["adamw", "sgd"])
def test_the_bits_of_the_node_in_memory(
    tmp_path: Path, rule: UpdateRule | None, wire: WireType, devices: int, rng: random.Random
) -> None:
    expected, its_crew, its_records = train_in_memory(PASSES, node_options(rule, wire))
    places = [tmp_path / str(index) for index in range(devices)]
    parameters = Precision.BF16 if wire is WireType.BF16 else Precision.FP32
    records: list[PassRecord] = []
    streaming = StreamingOptions(commit_every=rng.choice([1, 2, 3]), snapshot_every=rng.choice([0, 2]))
    with create(places, rule, parameters=parameters, threads=rng.choice([1, 3])) as store:
        options = node_options(rule, wire)
        node, crew = train(store, 0, options=options, passes=PASSES, streaming=streaming, on_pass=records.append)
        for layer in range(len(TABLE)):
            assert torch.equal(node.weights(layer), expected.weights(layer))
            assert node.exponents(layer) == expected.exponents(layer)
        assert store.state.trained == sum(PASSES)
    for mine, theirs in zip(crew, its_crew, strict=True):
        assert len(mine.forward) == len(theirs.forward) == len(PASSES) * len(TABLE)
        assert all(torch.equal(a, b) for a, b in zip(mine.forward, theirs.forward, strict=True))
    assert records == its_records
    assert any(record.skipped == ("block.0.bias",) for record in records)


@pytest.mark.parametrize("clip", [None, Clip(3.0), Clip(3.0, Clipping.DELAYED)], ids=["plain", "exact", "delayed"])
def test_passes_that_accumulate_send_and_change_nothing(tmp_path: Path, clip: Clip | None) -> None:
    passes = [Pass.ACCUMULATE, True, Pass.ACCUMULATE, Pass.ACCUMULATE, Pass.TRAIN, False, Pass.ACCUMULATE]
    streaming = StreamingOptions(clip=clip, commit_every=2)
    states, records = [], []
    for name, chosen in (("a", passes), ("b", [True, True, False])):
        with create([tmp_path / name]) as store:
            _, crew = train(store, 0, passes=chosen, streaming=streaming, on_pass=records.append)
            states.append(digest(store))
    assert states[0] == states[1]
    assert [record.train for record in records[:7]] == [False, True, False, False, True, False, False]
    assert [record.index for record in records[:7]] == list(range(7))
    assert len(crew[0].forward) == 3 * len(TABLE)
    if clip is None:
        nodes = [train_in_memory(chosen, node_options())[0] for chosen in (passes, [True, True, False])]
        assert all(torch.equal(nodes[0].weights(layer), nodes[1].weights(layer)) for layer in range(len(TABLE)))
        assert nodes[0].trained == 2


def test_bf16_moments_follow_the_slow_model(tmp_path: Path) -> None:
    rule = Adam(lr=0.01, decay=0.01)
    with create([tmp_path / "a"], rule, moments=Precision.BF16) as store:
        node, _ = train(store, 2, options=node_options(rule))
        weights = {layer: node.weights(layer) for layer in (0, 3)}
    for layer, found in weights.items():
        master = initial(layer).numpy()
        moments = optimizers.Moments.zeros(master.size)
        exponents = replace(node_options(rule))
        for step in range(2):
            total = _summed(layer, step)
            master = optimizers.step(rule, master, moments, total, rule.lr * exponents.rate(step), 1 / WORKERS)
            moments.first, moments.second = (
                optimizers.round_bf16(moments.first),
                optimizers.round_bf16(moments.second),
            )
        # sums travel as integers of a shared exponent: a rounding of 2^-24 of its range each
        assert np.abs(found.numpy() - master).max() < 1e-3
        assert np.abs(found.numpy() - initial(layer).numpy()).max() > 1e-3


def _summed(layer: int, step: int) -> Any:
    parts = [gradient(step, worker, layer, 0).astype(np.float64) for worker in range(WORKERS)]
    return np.sum(parts, axis=0).astype(np.float32)


def test_a_node_that_runs_again_goes_on_and_one_that_failed_says_so_again(tmp_path: Path) -> None:
    places, options, fabric = [tmp_path / "again"], node_options(), MemorySwitch(WORKERS)
    with create([tmp_path / "once"]) as store:
        train(store, 4)
        wanted = digest(store)
    with create(places) as store:
        node = StreamingNode(fabric.root(), store, options)
        for first in (0, 2):
            crew = [Worker(fabric.worker(index), index, [True] * 2, first, options.wire) for index in range(WORKERS)]
            for worker in crew:
                worker.start()
            node.run([True] * 2)
        assert digest(store) == wanted
        fabric.fail(EndpointError("over", kind="closed"))
        for _ in range(2):
            with pytest.raises(EndpointError, match="over"):
                node.run([True])


def test_resumed_runs_equal_one_run(tmp_path: Path, rng: random.Random) -> None:
    with create([tmp_path / "a"]) as store:
        train(store, 6)
        wanted = digest(store)
    create([tmp_path / "b"]).close()
    for steps in (*sorted(rng.sample(range(1, 6), 2)), 6):
        with Store.open([tmp_path / "b"]) as store:
            train(store, steps)
    with Store.open([tmp_path / "b"]) as store:
        assert digest(store) == wanted


# ---- clipping --------------------------------------------------------------------------------


def _clipped_by_hand(steps: int, clip: Clip) -> list[np.ndarray[Any, Any]]:
    """The slow model, with every gradient in memory: weights of all layers after `steps`."""
    rule, options = Adam(lr=0.01), node_options(Adam(lr=0.01))
    master = [initial(layer).numpy() for layer in range(len(TABLE))]
    moments = [[optimizers.Moments.zeros(tensor.numel) for tensor in layer.tensors] for layer in TABLE]
    last = None
    for step in range(steps):
        totals = {
            (layer.index, number): np.sum(
                [gradient(step, worker, layer.index, number).astype(np.float64) for worker in range(WORKERS)], axis=0
            )
            for layer in TABLE
            for number in range(len(layer.tensors))
            if (step, layer.index, number) != (2, 1, 1)  # saturated, and so left alone
        }
        norm = float(np.sqrt(sum(((total / WORKERS) ** 2).sum() for total in totals.values())))
        known = norm if clip.how is Clipping.EXACT else last
        factor = 1.0 if known is None else min(1.0, clip.norm / (known + 1e-6))
        last = norm
        for (layer, number), total in totals.items():
            span = TABLE[layer].tensors[number].span
            master[layer][span] = optimizers.step(
                rule, master[layer][span], moments[layer][number], total.astype(np.float32),
                rule.lr * options.rate(step), factor / WORKERS,
            )  # fmt: skip
    return master


@pytest.mark.parametrize("how", list(Clipping))
def test_clipping_is_by_the_norm_of_all_layers(tmp_path: Path, how: Clipping) -> None:
    rule, clip = Adam(lr=0.01), Clip(3.0, how)  # norms here are about 80
    with create([tmp_path / "a", tmp_path / "b"], rule) as store:
        node, _ = train(store, 4, options=node_options(rule), streaming=StreamingOptions(clip=clip))
        for layer, wanted in enumerate(_clipped_by_hand(4, clip)):
            # Adam divides by the gradient's size: where it is near to nothing, the rounding of the sums shows
            close = np.isclose(node.weights(layer).numpy(), wanted, rtol=1e-4, atol=2e-5)
            assert close.mean() > 0.999
        wanted_digest = digest(store)
    create([tmp_path / "c", tmp_path / "d"], rule).close()
    for steps in (1, 3, 4):
        with Store.open([tmp_path / "c", tmp_path / "d"]) as store:
            train(store, steps, options=node_options(rule), streaming=StreamingOptions(clip=clip))
    with Store.open([tmp_path / "c", tmp_path / "d"]) as store:
        assert digest(store) == wanted_digest
    with pytest.raises(TrainingError, match="positive number"):
        Clip(0.0)


def test_clipping_by_a_norm_never_reached_changes_no_bit(tmp_path: Path) -> None:
    digests = set()
    for number, clip in enumerate((None, Clip(1e9), Clip(1e9, Clipping.DELAYED))):
        with create([tmp_path / str(number)]) as store:
            train(store, 3, streaming=StreamingOptions(clip=clip))
            digests.add(digest(store))
    assert len(digests) == 1


def test_a_step_waits_for_the_states_that_the_one_before_wrote(tmp_path: Path) -> None:
    """One layer, a slow device and a large arena: parameters come from memory long before the states are on disk."""
    table = _long(1)
    finals = []
    for number, options in enumerate((StoreOptions(rate=1e6), StoreOptions())):
        fabric = MemorySwitch(1)
        geometry = Geometry(table, 1)
        with Store.create([tmp_path / str(number)], geometry, lambda _layer: torch.zeros(3000), options) as store:
            node = StreamingNode(fabric.root(), store, NodeOptions(1), StreamingOptions(arena=1 << 22))
            PushOnes(fabric, table, 4).start()
            node.run([True] * 4)
            assert store.version(0).steps == (4,)
            finals.append(node.weights(0))
    assert torch.equal(*finals)


# ---- memory ----------------------------------------------------------------------------------


def _long(layers: int) -> LayerTable:
    return LayerTable(tuple(LayerSpec.of(i, f"l{i}", [(f"l{i}.w", (3000,))]) for i in range(layers)))


class PushOnes(threading.Thread):
    """A worker for any table: a layer's gradients follow its parameters."""

    def __init__(self, fabric: MemorySwitch, table: LayerTable, steps: int) -> None:
        super().__init__(daemon=True)
        self._port, self._table, self._steps = fabric.worker(0), table, steps

    def run(self) -> None:
        try:
            for _ in range(self._steps):
                for layer in self._table:
                    self._port.pull(np.zeros(message_size(layer, WireType.BF16), np.uint8)).wait(60)
                for layer in reversed(self._table.layers):
                    self._port.pull(np.zeros(message_size(layer, WireType.BF16), np.uint8)).wait(60)
                    self._port.push(np.ones(layer.numel, np.float32), exponent=1)
        except EndpointError:
            return


@pytest.mark.parametrize("layers", [3, 60])
def test_memory_does_not_grow_with_the_model(tmp_path: Path, layers: int) -> None:
    table = _long(layers)
    geometry = Geometry(table, 1)
    largest = Buffers.size(geometry, 0, Work.BACKWARD)
    fabric = MemorySwitch(1)
    arena = 2 * largest
    with Store.create([tmp_path / "s"], geometry, lambda _layer: torch.zeros(3000)) as store:
        node = StreamingNode(fabric.root(), store, NodeOptions(1), StreamingOptions(arena=arena))
        PushOnes(fabric, table, 3).start()
        node.run([True] * 3)
        assert node.arena.size == arena
        assert largest <= node.arena.peak <= arena
        assert store.state.trained == 3
    if layers == 60:
        assert sum(layer.numel for layer in table) * 14 > 10 * arena


def test_an_arena_that_is_too_small_is_refused(tmp_path: Path) -> None:
    fabric = MemorySwitch(WORKERS)
    with create([tmp_path / "s"]) as store:
        with pytest.raises(TrainingError, match="an arena of 4096 bytes: one layer needs"):
            StreamingNode(fabric.root(), store, node_options(), StreamingOptions(arena=4096))
        with pytest.raises(TrainingError, match="the store has bf16 parameters, the wire takes fp32"):
            StreamingNode(fabric.root(), store, node_options(wire=WireType.FP32))
        with pytest.raises(TrainingError, match="the store has the moments of adam"):
            StreamingNode(fabric.root(), store, node_options(Sgd()))
    for wrong in ({"arena": -1}, {"commit_every": 0}, {"snapshot_every": -1}, {"keep": 0}):
        with pytest.raises(TrainingError):
            StreamingOptions(**wrong)


def test_the_arena_serves_in_order_and_loses_nothing(rng: random.Random) -> None:
    arena = Arena(64 * 4096)
    served: list[int] = []
    lock = threading.Lock()

    def user(number: int) -> None:
        local = random.Random(number)
        for _ in range(50):
            region = arena.take(local.randrange(1, 30 * 4096))
            assert region is not None
            region.memory[:] = number
            time.sleep(0)
            assert (region.memory == number).all()  # nobody else has it
            arena.give_back(region)
        with lock:
            served.append(number)

    threads = [threading.Thread(target=user, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(served) == [1, 2, 3, 4, 5, 6]
    whole = arena.take(64 * 4096)  # all of it is in one piece again
    assert whole is not None
    with pytest.raises(TrainingError, match="give it more"):
        arena.take(65 * 4096)
    waiting = threading.Thread(target=lambda: served.append(-1 if arena.take(1) is None else 0))
    waiting.start()
    arena.close()
    waiting.join(60)
    assert served[-1] == -1


# ---- order -----------------------------------------------------------------------------------


def test_on_a_busy_device_parameters_go_first_and_writes_last(tmp_path: Path) -> None:
    """Queue one request of each kind, lowest priority first, on a slow device: they end in the order of priority."""
    from catchment.host import _optimizer

    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    memory = [np.zeros(size, np.uint8) for size in (1 << 18, 1 << 12, 1 << 14, 1 << 14)]
    with path.open("r+b") as file:
        device = _optimizer.Device(file.fileno(), uring=True, chunk=4096, depth=1, rate=2e6, index=0, faults=None)
        for _ in range(20):
            began = time.monotonic()
            first = device.write(0, memory[0])  # an eighth of a second
            write = device.write(1 << 19, memory[1])
            state = device.read(_optimizer.Lane.STATE_READ, 0, memory[2])
            parameters = device.read(_optimizer.Lane.PARAMETER_READ, 0, memory[3])
            queued = time.monotonic() - began
            assert [ticket.wait() for ticket in (first, write, state, parameters)] == [0, 0, 0, 0]
            if queued < 0.05:  # else this thread stood still, and they were not in the queue together
                break
        assert parameters.ended < state.ended < first.ended < write.ended
        device.close()


def test_a_step_overlaps_disk_network_and_update(tmp_path: Path) -> None:
    """The timeline of a slow device shows the disk at work on one layer, network or processor on another."""
    table = _long(12)
    timeline = Timeline(enabled=True)
    fabric = MemorySwitch(1)
    with Store.create(
        [tmp_path / "s"], Geometry(table, 1), lambda _layer: torch.zeros(3000), StoreOptions(rate=20e6)
    ) as store:
        node = StreamingNode(fabric.root(), store, NodeOptions(1), StreamingOptions(arena=1 << 20), timeline=timeline)
        PushOnes(fabric, table, 2).start()
        node.run([True, True])
    spans = timeline.during(0, float("inf"))
    assert {span.kind for span in spans} >= {"read", "push", "pull", "update", "write", "commit"}
    disk = [span for span in spans if span.kind in ("read", "write")]
    others = [span for span in spans if span.kind in ("push", "pull", "update")]
    overlapping = [(d, o) for d in disk for o in others if o.start < d.end and o.end > d.start and o.layer != d.layer]
    assert overlapping


# ---- through real endpoints --------------------------------------------------------------------


@contextmanager
def _slow_store(tmp_path: Path, rate: float) -> Iterator[Store]:
    create([tmp_path / "a"]).close()
    with Store.open([tmp_path / "a"], StoreOptions(rate=rate, threads=1)) as store:
        yield store


def test_slow_devices_hold_the_network_back_and_lose_nothing(tmp_path: Path) -> None:
    """Real endpoints and frames: a small arena on a slow device makes the workers wait for credit, nothing fails."""
    with create([tmp_path / "b"]) as store:
        train(store, 2)
        wanted = digest(store)
    with luwu(WORKERS) as cluster, _slow_store(tmp_path, 3e6) as store:
        largest = max(Buffers.size(store.geometry, layer, Work.BACKWARD) for layer in range(len(TABLE)))
        node = StreamingNode(cluster.root, store, node_options(), StreamingOptions(arena=largest))
        crew = [Worker(endpoint, index, [True] * 2, 0, WireType.BF16) for index, endpoint in enumerate(cluster.workers)]
        for worker in crew:
            worker.start()
        node.run([True] * 2)
        for worker in crew:
            worker.join(60)
        assert digest(store) == wanted
        assert node.arena.peak <= largest
        stalls = [endpoint.stats()["stalls"] for endpoint in cluster.workers]
        assert any(stall["credit"]["count"] + stall["pull"]["count"] for stall in stalls)


def test_a_failing_network_ends_every_step(tmp_path: Path) -> None:
    fabric = MemorySwitch(WORKERS)
    with create([tmp_path / "a"]) as store:
        node = StreamingNode(fabric.root(), store, node_options())
        threading.Timer(0.05, fabric.fail, [EndpointError("switch gone", kind="stalled")]).start()
        with pytest.raises(EndpointError, match="switch gone"):
            node.run([True, True])
    with Store.open([tmp_path / "a"]) as store:
        assert store.state.trained == 0
