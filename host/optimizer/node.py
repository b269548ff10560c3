"""The optimizer node's two flows: parameters down in the order of the passes, gradients up, updated as they come.

    sender thread    pass 0:  push L0 L1 .. Ln   push Ln .. L1 L0   pass 1:  push L0 ..
    updater thread                pull+update Ln .. L1 L0 (pulls posted `ahead` layers early)

A layer's push waits for its own update of the previous pass and for nothing else.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from catchment.host.layers import (
    Completion,
    LayerSpec,
    LayerTable,
    Pass,
    Phase,
    TensorSpec,
    Timeline,
    TrainingError,
    TransferPort,
)
from catchment.host.optimizer.layer_task import LayerTask, PendingSum
from catchment.host.optimizer.loss_scale import LossScale
from catchment.host.optimizer.options import NodeOptions
from catchment.host.optimizer.torch_options import torch_groups
from catchment.host.optimizer.torch_state import LoadedState, StateDict, damaged_entry, layer_notes, state_dict_of


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What the node did in one pass.

    Attributes:
        index, train: number of the pass, and whether it was to update the weights.
        skipped: names of the tensors of which a value saturated on some worker; they were left alone.
        overflowed: for that reason the whole step was skipped (dynamic loss scale).
        loss_scale: of this pass.
    """

    index: int
    train: bool
    skipped: tuple[str, ...] = ()
    overflowed: bool = False
    loss_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class _Held:
    """Gradients of a layer that have arrived; `usable`: the numbers of the tensors that may be updated."""

    layer: int
    pending: PendingSum
    usable: list[int]


class OptimizerNode:
    """Serves the parameters of `table` and updates them from the workers' sums."""

    def __init__(
        self,
        port: TransferPort,
        table: LayerTable,
        weights: Sequence[torch.Tensor],
        options: NodeOptions,
        *,
        timeline: Timeline | None = None,
        on_pass: Callable[[PassRecord], None] | None = None,
    ) -> None:
        """`weights`: one tensor per layer of `table`, its elements in the layer's order."""
        if len(weights) != len(table):
            raise TrainingError(f"{len(weights)} layers of weights, the table has {len(table)} layers")
        self._port = port
        self._table = table
        self._options = options
        self._timeline = Timeline() if timeline is None else timeline
        self._on_pass = on_pass
        from catchment.host import _optimizer  # noqa: PLC0415  the error for a missing build belongs to the first use

        updater = _optimizer.Updater(options.threads)
        self._tasks = [
            LayerTask(
                table,
                index,
                flat,
                workers=options.workers,
                wire=options.wire,
                scaling=options.exponents,
                rule=options.rule.kind,
                updater=updater,
            )
            for index, flat in enumerate(weights)
        ]
        self._rules = options.rules(table)
        self._loss_scale = LossScale(options.loss_scale)
        self._trained = 0
        self._ready = [0] * len(table)  # the first pass whose parameters each layer has
        self._change = threading.Condition()
        self._failure: BaseException | None = None

    def weights(self, layer: int) -> torch.Tensor:
        """The master weights of a layer (flat fp32, live: copy before the next pass)."""
        return self._tasks[layer].state.master

    def exponents(self, layer: int) -> tuple[int, ...]:
        """The exponents of a layer's next push."""
        return self._tasks[layer].exponents()

    @property
    def trained(self) -> int:
        """Training passes so far."""
        return self._trained

    def state_dict(self) -> StateDict:
        """Weights, moments and groups as torch has them (`torch_state`); copies, taken between two runs.

        `torch.distributed.checkpoint.save` takes it, and `set_state_dict` loads it into a plain model and optimizer.
        """
        notes = {
            "trained": self._trained,
            "layers": layer_notes(self._table, [task.notes() for task in self._tasks]),
            "loss_scale": self._loss_scale.notes(),
        }
        steps = [task.state.steps for task in self._tasks]
        groups = torch_groups(self._rules, self._trained)
        return state_dict_of(self._table, self._rules.kind, groups, steps, self._copy, notes)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of a training here, out of core or in torch; before `run`, or between two.

        The options of its groups are not taken: this node has its own. With a state of this release the training
        goes on bit for bit, with torch's it does within the rounding that docs/explanation/optimizer.md names.

        Raises:
            TrainingError: the state does not fit the table or the optimizer; the node is as it was.
        """
        loaded = LoadedState(self._table, self._rules.kind, state)
        try:
            exponents = [task.exponents_after(loaded.layer_notes(task.spec)) for task in self._tasks]
            loss_scale = LossScale(self._options.loss_scale, loaded.notes.get("loss_scale"))
        except (ValueError, TypeError, LookupError) as error:
            raise damaged_entry(error) from error
        for task, own in zip(self._tasks, exponents, strict=True):
            task.load(loaded, own)
        self._trained = loaded.trained
        self._loss_scale = loss_scale

    def _copy(self, layer: LayerSpec, section: str, tensor: TensorSpec) -> torch.Tensor:
        return self._tasks[layer.index].state.section(section)[tensor.span].view(tensor.shape).clone()

    def run(self, passes: Sequence[bool | Pass]) -> None:
        """Run all passes: True is a training pass, False a forward-only one. Returns when all is acknowledged.

        Raises:
            TrainingError: a message did not fit, or gradients are not finite. EndpointError: the network failed.
        """
        self._ready = [0] * len(self._table)
        sender = threading.Thread(target=self._guarded, args=(self._send, passes), name="parameters", daemon=True)
        sender.start()
        self._guarded(self._update, passes)
        if self._failure is None:
            sender.join()
        if self._failure is not None:  # the sender may still wait for the network: closing the port ends it
            raise self._failure

    def _guarded(self, flow: Callable[[Sequence[bool | Pass]], None], passes: Sequence[bool | Pass]) -> None:
        try:
            flow(passes)
        except BaseException as error:  # handed to run(): the flows end together
            with self._change:
                if self._failure is None:
                    self._failure = error
                self._change.notify_all()

    def _send(self, passes: Sequence[bool | Pass]) -> None:
        in_flight: deque[tuple[int, float, Completion]] = deque()
        trained = self._trained
        for number, kind in enumerate(map(Pass, passes)):
            order = [(layer, Phase.FORWARD) for layer in range(len(self._table))]
            if kind is not Pass.FORWARD:
                order += [(layer, Phase.BACKWARD) for layer in reversed(range(len(self._table)))]
            for layer, phase in order:
                if not self._await_ready(layer, number):
                    return
                last, accumulate = number == len(passes) - 1, kind is Pass.ACCUMULATE
                message = self._tasks[layer].message(number, phase, last, accumulate, self._loss_scale, trained=trained)
                in_flight.append((layer, time.monotonic(), self._port.push(message)))
                self._reap(in_flight, self._options.ahead)
            trained += kind is Pass.TRAIN
        self._reap(in_flight, 0)

    def _reap(self, in_flight: deque[tuple[int, float, Completion]], keep: int) -> None:
        while len(in_flight) > keep or (in_flight and in_flight[0][2].done()):
            layer, started, completion = in_flight.popleft()
            completion.wait()
            self._timeline.add("push", layer, started, started + completion.latency)

    def _await_ready(self, layer: int, number: int) -> bool:
        with self._change:
            self._change.wait_for(lambda: self._failure is not None or self._ready[layer] >= number)
            return self._failure is None

    def _update(self, passes: Sequence[bool | Pass]) -> None:
        backward = list(reversed(range(len(self._table))))
        trains = [Pass(each) is Pass.TRAIN for each in passes]
        planned = deque(layer for train in trains if train for layer in backward)
        posted: deque[tuple[int, float, PendingSum]] = deque()
        trained = self._trained
        for number, train in enumerate(trains):
            scale = self._loss_scale.current
            skipped: list[str] = []
            held: list[_Held] = []
            for layer in backward if train else ():
                while planned and len(posted) < self._options.ahead:
                    index = planned.popleft()
                    posted.append((index, time.monotonic(), self._tasks[index].post_pulls(self._port)))
                _, asked, pending = posted.popleft()
                if not self._await_sum(pending):
                    return
                self._timeline.add("pull", layer, asked, asked + pending.completions[-1].latency)
                usable = self._tasks[layer].arrived(pending, self._loss_scale.shift)
                skipped += [t.name for i, t in enumerate(self._table[layer].tensors) if i not in usable]
                held.append(_Held(layer, pending, usable))
                if not self._loss_scale.dynamic:
                    self._apply(held, trained, scale, number)
            overflowed = self._loss_scale.dynamic and bool(skipped)
            if train:
                self._loss_scale.step(overflowed)
                if not overflowed:
                    self._apply(held, trained, scale, number)
                trained += 1
                self._trained = trained
            for layer in range(len(self._table)):  # those that a pass leaves as they are
                self._mark_ready(layer, number + 1)
            if self._on_pass is not None:
                self._on_pass(PassRecord(number, train, tuple(skipped), overflowed, scale))

    def _apply(self, held: list[_Held], trained: int, loss_scale: float, number: int) -> None:
        """Update with all gradients in `held`, and forget them."""
        step = self._rules.step(trained, self._options.mean(loss_scale))
        for each in held:
            with self._timeline.span("update", each.layer):
                self._tasks[each.layer].apply(each.pending, each.usable, step)
            self._mark_ready(each.layer, number + 1)
        held.clear()

    def _await_sum(self, pending: PendingSum) -> bool:
        for completion in pending.completions:
            completion.wait()
        with self._change:
            return self._failure is None

    def _mark_ready(self, layer: int, number: int) -> None:
        with self._change:
            self._ready[layer] = number
            self._change.notify_all()
