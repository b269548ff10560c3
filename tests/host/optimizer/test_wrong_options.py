"""Options of another type, or that cannot be, are refused where they are made, with what is taken."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from out_of_core import TABLE, WORKERS, create, node_options, train

from catchment.host.given_numbers import is_real, is_whole
from catchment.host.layers import TrainingError
from catchment.host.optimizer import Adam, DynamicLossScale, NodeOptions, Sgd
from catchment.host.optimizer.groups import ParameterGroup
from catchment.host.optimizer.scaling import ScalingOptions
from catchment.host.optimizer.schedules import constant, cosine, linear, staircase, warmup
from catchment.host.optimizer.store import Store, StoreError, StoreOptions
from catchment.host.optimizer.store.group_commit import snapshot_name
from catchment.host.optimizer.streaming import Clip, StreamingNode, StreamingOptions
from catchment.sim.lab.memory_switch import MemorySwitch

NO_COUNT: list[Any] = [True, 1.5, math.nan, math.inf, -1, "3", None, [], np.float32(2)]
NO_NUMBER: list[Any] = [True, math.nan, math.inf, -1, "3", None, [], 10**400]
COUNTS: dict[str, Callable[[Any], object]] = {
    "NodeOptions.workers": NodeOptions,
    "NodeOptions.ahead": lambda count: NodeOptions(1, ahead=count),
    "NodeOptions.threads": lambda count: NodeOptions(1, threads=count),
    "StreamingOptions.arena": lambda count: StreamingOptions(arena=count),
    "StreamingOptions.commit_every": lambda count: StreamingOptions(commit_every=count),
    "StreamingOptions.snapshot_every": lambda count: StreamingOptions(snapshot_every=count),
    "StreamingOptions.keep": lambda count: StreamingOptions(keep=count),
    "ScalingOptions.headroom": lambda count: ScalingOptions(headroom=count),
    "ScalingOptions.history": lambda count: ScalingOptions(history=count),
    "ScalingOptions.backoff": lambda count: ScalingOptions(backoff=count),
    "ScalingOptions.patience": lambda count: ScalingOptions(patience=count),
    "DynamicLossScale.growth": lambda count: DynamicLossScale(growth=count),
    "DynamicLossScale.patience": lambda count: DynamicLossScale(patience=count),
    "StoreOptions.chunk": lambda count: StoreOptions(chunk=count),
    "StoreOptions.depth": lambda count: StoreOptions(depth=count),
    "StoreOptions.threads": lambda count: StoreOptions(threads=count),
    "warmup": warmup,
    "linear": linear,
    "cosine": cosine,
    "staircase": lambda count: staircase(count, 0.5),
}
NUMBERS: dict[str, Callable[[Any], object]] = {
    "NodeOptions.loss_scale": lambda number: NodeOptions(1, loss_scale=number),
    "StoreOptions.rate": lambda number: StoreOptions(rate=number),
    "DynamicLossScale.most": lambda number: DynamicLossScale(most=number),
    "Adam.lr": lambda number: Adam(lr=number),
    "Adam.beta1": lambda number: Adam(beta1=number),
    "Adam.eps": lambda number: Adam(eps=number),
    "Adam.decay": lambda number: Adam(decay=number),
    "Sgd.lr": lambda number: Sgd(lr=number),
    "Sgd.momentum": lambda number: Sgd(momentum=number),
    "Clip.norm": Clip,
    "constant": constant,
    "linear.end": lambda number: linear(3, number),
    "staircase.factor": lambda number: staircase(3, number),
}


@pytest.mark.parametrize("made", COUNTS.values(), ids=COUNTS)
def test_what_is_no_count_is_refused(made: Callable[[Any], object]) -> None:
    for wrong in NO_COUNT:
        with pytest.raises((TrainingError, StoreError)) as caught:
            made(wrong)
        assert repr(wrong) in str(caught.value)


@pytest.mark.parametrize("made", NUMBERS.values(), ids=NUMBERS)
def test_what_is_no_number_is_refused(made: Callable[[Any], object]) -> None:
    for wrong in NO_NUMBER:
        with pytest.raises((TrainingError, StoreError)):
            made(wrong)


def test_numbers_of_other_types_are_taken() -> None:
    assert NodeOptions(np.int64(2)).mean(1.0) == 0.5
    assert StreamingOptions(commit_every=np.uint8(3)).commit_every == 3
    assert Adam(lr=np.float32(0.5)).lr == 0.5
    assert is_whole(torch.tensor(3), 0, 3) and not is_whole(torch.tensor(4), 0, 3)
    assert is_real(torch.tensor(0.5)) and not is_real(torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: NodeOptions(1, "adam"), "rule 'adam': give an Adam or Sgd"),
        (lambda: NodeOptions(1, wire="bf16"), "wire 'bf16': give a WireType"),
        (lambda: NodeOptions(1, scaling=4), "scaling 4: give ScalingOptions"),
        (lambda: NodeOptions(1, rate=0.5), "rate 0.5: give a schedule"),
        (lambda: NodeOptions(1, groups=(Adam(),)), "give a tuple of ParameterGroup"),
        (lambda: ParameterGroup("a.w", Adam()), "a parameter group of 'a.w': give a tuple of tensors' names"),
        (lambda: ParameterGroup(("a.w",), 0.1), "a parameter group with rule 0.1: give an Adam or Sgd, or None"),
        (lambda: ParameterGroup(("a.w",), None, 0.1), "a parameter group with rate 0.1: give a function"),
        (lambda: StreamingOptions(clip=1.0), "clip 1.0: give a Clip, or None"),
        (lambda: StreamingOptions(group="/tmp"), "group '/tmp': give the Path of a folder"),
        (lambda: Clip(1.0, "exact norm"), "clipping by 'exact norm': give Clipping.EXACT or Clipping.DELAYED"),
        (lambda: Sgd(nesterov=1), "nesterov is True or False"),
        (lambda: StoreOptions(direct=None), "direct None: True or False"),
        (lambda: StoreOptions(kernels=None), "kernels None: a name"),
        (lambda: StoreOptions(chunk=1 << 40), "whole pages of 4096 bytes, 1073741824 at most"),
        (lambda: ScalingOptions(initial=1.5), "initial exponent 1.5 is outside"),
    ],
)
def test_options_of_other_types_say_what_is_taken(made: Callable[[], object], words: str) -> None:
    with pytest.raises((TrainingError, StoreError), match=re.escape(words)):
        made()


def test_more_snapshots_than_there_is_room_for_are_refused_before_the_training(tmp_path: Path) -> None:
    port = MemorySwitch(WORKERS).root()
    with create([tmp_path / "a"]) as store:
        many = StreamingOptions(snapshot_every=1, keep=2000)
        words = r"keep 2000 snapshots: the store's commit record has room for (\d+) of this model: give keep 1\.\.\1$"
        with pytest.raises(TrainingError, match=words) as caught:
            StreamingNode(port, store, node_options(), many)
        room = int(re.findall(r"room for (\d+)", str(caught.value))[0])
        StreamingNode(port, store, node_options(), replace(many, snapshot_every=0))
        StreamingNode(port, store, node_options(), replace(many, keep=room))
        store.take_snapshot("mine")
        with pytest.raises(
            TrainingError, match=rf"besides 1 that have names of their own.* give keep 1\.\.{room - 1}$"
        ):
            StreamingNode(port, store, node_options(), replace(many, keep=room))
        long = replace(node_options(), scaling=ScalingOptions(history=1 << 40))
        with pytest.raises(TrainingError, match=r"has room for 0 of this model: drop some, or shorten"):
            StreamingNode(port, store, long, StreamingOptions(snapshot_every=1, keep=1))


def test_as_many_snapshots_as_there_is_said_to_be_room_for_are_kept(tmp_path: Path) -> None:
    with create([tmp_path / "a"]) as store:
        with pytest.raises(TrainingError) as caught:
            StreamingNode(
                MemorySwitch(WORKERS).root(), store, node_options(), StreamingOptions(snapshot_every=1, keep=2000)
            )
        room = int(re.findall(r"room for (\d+)", str(caught.value))[0])
        train(store, room + 2, streaming=StreamingOptions(snapshot_every=1, keep=room))
        assert list(store.snapshots) == [snapshot_name(step) for step in range(3, room + 3)]
    with Store.open([tmp_path / "a"]) as store:
        assert len(store.snapshots) == room >= 8
        assert len(store.state.layers) == len(TABLE)
