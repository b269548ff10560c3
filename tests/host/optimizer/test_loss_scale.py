"""Dynamic loss scaling: an overflow anywhere skips the whole step, in memory and on disk."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from out_of_core import TABLE, WORKERS, Worker, create, digest, gradient, in_half, initial, node_options, train

from catchment.host import EndpointError
from catchment.host.layers import TrainingError
from catchment.host.optimizer import Adam, DynamicLossScale, NodeOptions, OptimizerNode, PassRecord
from catchment.host.optimizer.loss_scale import LossScale
from catchment.host.optimizer.store import Store, page_aligned
from catchment.host.optimizer.store.check import check
from catchment.host.optimizer.streaming import Clip, StreamingOptions
from catchment.host.optimizer.streaming.clipping import Clipping
from catchment.sim.golden import optimizers
from catchment.sim.lab.memory_switch import MemorySwitch

STEPS = 9
CHOSEN = DynamicLossScale(initial=2.0**16, growth=2)
"""Standard normal gradients overflow fp16 from about 2^14 on: steps are good and skipped in turn."""


# ---- the scale itself ------------------------------------------------------------------------


@given(overflows=st.lists(st.booleans(), max_size=60), growth=st.integers(1, 4), cut=st.integers(0, 60))
def test_it_halves_on_overflow_doubles_after_good_steps_and_survives_its_notes(
    overflows: list[bool], growth: int, cut: int
) -> None:
    options = DynamicLossScale(initial=8.0, growth=growth, least=0.25, most=64.0, patience=1000)
    scale, wanted, good = LossScale(options), 8.0, 0
    for number, overflowed in enumerate(overflows):
        if number == cut:
            scale = LossScale(options, scale.notes())
        scale.step(overflowed)
        good = 0 if overflowed else good + 1
        if overflowed:
            wanted = max(wanted / 2, 0.25)
        elif good == growth:
            wanted, good = min(wanted * 2, 64.0), 0
        assert scale.current == wanted == 2.0**scale.shift


def test_a_dynamic_scale_begins_where_torch_s_does() -> None:
    assert LossScale(DynamicLossScale()).current == torch.amp.GradScaler("cpu", enabled=True).get_scale() == 65536


def test_a_fixed_scale_stays() -> None:
    scale = LossScale(3.0)
    scale.step(overflowed=True)
    assert (scale.current, scale.shift, scale.dynamic, scale.notes()) == (3.0, 0, False, None)


def test_endless_overflow_at_the_least_scale_ends_the_training() -> None:
    scale = LossScale(DynamicLossScale(initial=4.0, least=2.0, patience=3))
    for _ in range(3):
        scale.step(overflowed=True)
    scale.step(overflowed=False)
    scale.step(overflowed=True)
    scale.step(overflowed=True)
    with pytest.raises(TrainingError, match="overflowed 3 times in a row at the least loss scale, 2"):
        scale.step(overflowed=True)


@pytest.mark.parametrize(
    "wrong", [{"initial": 3.0}, {"least": 0.0}, {"most": 2.0}, {"growth": 0}, {"patience": 0}, {"most": math.inf}]
)
def test_bad_options(wrong: dict[str, float]) -> None:
    with pytest.raises(TrainingError, match=r"powers of two|from 1 on"):
        DynamicLossScale(**wrong)  # type: ignore[arg-type]


def test_notes_hold_the_overflows_in_a_row() -> None:
    options = DynamicLossScale(initial=1.0, least=1.0, patience=2)
    scale = LossScale(options)
    scale.step(overflowed=True)
    with pytest.raises(TrainingError, match="overflowed 2 times in a row"):
        LossScale(options, scale.notes()).step(overflowed=True)


# ---- in a training ---------------------------------------------------------------------------


def _options() -> NodeOptions:
    return replace(node_options(Adam(lr=0.01)), loss_scale=CHOSEN)


def _by_hand(steps: int) -> tuple[list[np.ndarray], list[tuple[bool, float]]]:
    """The slow model: weights, and of each step whether it was skipped, and its scale."""
    rule, options = Adam(lr=0.01), _options()
    master = [initial(layer).numpy() for layer in range(len(TABLE))]
    moments = [[optimizers.Moments.zeros(tensor.numel) for tensor in layer.tensors] for layer in TABLE]
    scale, good, records = CHOSEN.initial, 0, []
    places = [(layer.index, number) for layer in TABLE for number in range(len(layer.tensors))]
    for step in range(steps):
        with np.errstate(invalid="ignore"):
            sums = {
                place: np.sum([in_half(gradient(step, w, *place), scale) for w in range(WORKERS)], axis=0)
                for place in places
            }
        overflowed = not all(np.isfinite(each).all() for each in sums.values())
        records.append((overflowed, scale))
        for layer, number in places if not overflowed else ():
            span = TABLE[layer].tensors[number].span
            master[layer][span] = optimizers.step(
                rule, master[layer][span], moments[layer][number], sums[layer, number],
                rule.lr * options.rate(step), 1 / (WORKERS * scale),
            )  # fmt: skip
        good = 0 if overflowed else good + 1
        scale = scale / 2 if overflowed else scale * 2 if good == CHOSEN.growth else scale
        good %= CHOSEN.growth
    return master, records


def _scales_in(records: Sequence[PassRecord]) -> list[tuple[bool, float]]:
    return [(record.overflowed, record.loss_scale) for record in records]


def _bytes_of(store: Store) -> str:
    """All sections and step counts, and nothing of the trainer's notes."""
    summary = hashlib.sha256()
    for layer in store.geometry.table:
        version = store.version(layer.index)
        summary.update(repr(version.steps).encode())
        for section in store.geometry.sections:
            memory = page_aligned(store.geometry.section_bytes(layer.index, section))
            store.read(version, layer.index, section, memory).wait()
            summary.update(memory.tobytes())
    return summary.hexdigest()


def _in_memory(records: list[PassRecord]) -> list[torch.Tensor]:
    fabric, passes = MemorySwitch(WORKERS), [True] * STEPS
    options = _options()
    weights = [initial(layer) for layer in range(len(TABLE))]
    node = OptimizerNode(fabric.root(), TABLE, weights, options, on_pass=records.append)
    crew = [Worker(fabric.worker(index), index, passes, 0, options.wire, half=True) for index in range(WORKERS)]
    for worker in crew:
        worker.start()
    try:
        node.run(passes)
    finally:
        fabric.fail(EndpointError("over", kind="closed"))
        for worker in crew:
            worker.join(60)
    return [node.weights(layer) for layer in range(len(TABLE))]


@pytest.mark.parametrize("commit_every", [1, 2, 4])
def test_a_step_that_overflowed_leaves_the_store_as_it_was(tmp_path: Path, commit_every: int) -> None:
    streaming, records = StreamingOptions(commit_every=commit_every), []
    with create([tmp_path / "a", tmp_path / "b"]) as store:
        node, _ = train(store, STEPS, options=_options(), streaming=streaming, on_pass=records.append, half=True)
        wanted, expected = _by_hand(STEPS)
        assert _scales_in(records) == expected
        skips = [overflowed for overflowed, _ in expected]
        assert skips[:2] == [True, True]
        assert True in skips[3:]
        assert False in skips
        in_memory_records: list[PassRecord] = []
        in_memory = _in_memory(in_memory_records)
        assert _scales_in(in_memory_records) == expected
        for layer, weights in enumerate(wanted):
            assert torch.equal(node.weights(layer), in_memory[layer])
            # Adam divides by the gradient's size: where that is near to nothing, the rounding of the sums shows
            close = np.isclose(node.weights(layer).numpy(), weights, rtol=1e-4, atol=2e-5)
            assert close.mean() > 0.999
        assert {count for layer in TABLE for count in store.version(layer.index).steps} <= {skips.count(False)}
        assert check(store) == []
        final = digest(store)
    places = [tmp_path / "c", tmp_path / "d"]
    create(places).close()
    for step, (overflowed, _) in enumerate(expected):
        with Store.open(places) as store:
            before = _bytes_of(store)
            train(store, step + 1, options=_options(), streaming=streaming, half=True)
            assert (_bytes_of(store) == before) is overflowed
            assert store.state.trained == step + 1
    with Store.open(places) as store:
        assert digest(store) == final


@pytest.mark.parametrize("how", list(Clipping))
def test_with_clipping_a_skipped_step_has_no_norm(tmp_path: Path, how: Clipping, rng: random.Random) -> None:
    streaming, records = StreamingOptions(clip=Clip(3.0, how)), []
    with create([tmp_path / "a"]) as store:
        train(store, STEPS, options=_options(), streaming=streaming, on_pass=records.append, half=True)
        wanted = digest(store)
        assert 50 < store.state.notes["norm"] < 200  # of unscaled gradients
    assert [record.overflowed for record in records] == [overflowed for overflowed, _ in _by_hand(STEPS)[1]]
    create([tmp_path / "b"]).close()
    for steps in (*sorted(rng.sample(range(1, STEPS), 3)), STEPS):
        with Store.open([tmp_path / "b"]) as store:
            train(store, steps, options=_options(), streaming=streaming, half=True)
    with Store.open([tmp_path / "b"]) as store:
        assert digest(store) == wanted


def test_what_was_put_but_not_committed_is_no_place_for_the_next_version_if_a_commit_needs_it(tmp_path: Path) -> None:
    """A layer that a step leaves alone is put again where it is; the step after must not write there."""
    with create([tmp_path / "a"]) as store:
        version = store.version(1)
        store.put(1, version)
        assert store.place(1) != version.plane
        other = store.place(1)
        store.put(1, replace(version, plane=other))
        assert store.place(1) == other
        assert store.place(1, undo=True) not in {other, version.plane}
