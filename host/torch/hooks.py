"""The hooks of LuWu's Figure 5: pull before a layer computes, free after it, push its gradients, free them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from catchment.host.layers import Homes, Pass, Phase, Timeline, TrainingError, TransferPort, WireType
from catchment.host.torch.homes import ModelTransfers
from catchment.host.torch.outputs import tensors_in
from catchment.host.torch.partition import ModelLayer
from catchment.host.torch.state import refuse_state_dicts, state_of
from catchment.host.torch.storage import LayerStorage


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """Bytes on this worker: what the whole model would take, and the most that was ever held at a time."""

    model_bytes: int
    peak_parameter_bytes: int
    peak_gradient_bytes: int


class InNetwork:
    """A model whose parameters live at the optimizer node. Made by `attach`; the model is used as before."""

    def __init__(
        self,
        model: nn.Module,
        layers: Sequence[ModelLayer],
        ports: Sequence[TransferPort],
        homes: Homes,
        *,
        wire: WireType,
        prefetch: int,
        pushes: int,
        timeline: Timeline,
    ) -> None:
        """Take the parameters over, free them, install the hooks and post the first pulls."""
        self.table = homes.table
        self._timeline = timeline
        self._model = model
        self._storage = [LayerStorage(layer, model) for layer in layers]
        self._transfers = ModelTransfers(ports, homes, wire, prefetch=prefetch, pushes=pushes, timeline=timeline)
        self._phase: Phase | None = None
        self._kind = Pass.FORWARD
        self._accumulating = False
        self._next = 0  # the next layer to be pulled in this phase
        self._next_push = -1
        self._missing: list[int] = []  # per layer: gradients not yet accumulated
        self._exponents: list[tuple[tuple[int, ...], ...]] = [()] * len(layers)
        self._started = [0.0] * len(layers)
        self._loss_scale = 1.0
        self._peak_parameters = 0
        self._peak_gradients = 0
        self._handles: list[RemovableHandle] = [
            model.register_forward_pre_hook(self._before_model),
            model.register_forward_hook(self._after_model),
            *refuse_state_dicts(model),
        ]
        for index, layer in enumerate(layers):
            self._handles += [
                layer.module.register_forward_pre_hook(self._forward_pre_hook(index)),
                layer.module.register_forward_hook(self._forward_hook(index)),
            ]
            for parameter in self._storage[index].parameters:
                if parameter.requires_grad:
                    hook = self._gradient_hook(index)
                    self._handles.append(
                        parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
                    )

    @property
    def memory(self) -> WorkerMemory:
        """Measured so far; parameters include the receive buffers of pulls in flight."""
        return WorkerMemory(self.table.numel * 4, self._peak_parameters, self._peak_gradients)

    @property
    def loss_scale(self) -> float:
        """What the optimizer node divides this pass's gradients by; known once forward has run."""
        return self._loss_scale

    def trained(self) -> int:
        """The steps that the weights of the next pass have had, as the optimizer node says with the first layer.

        Waits for that layer. A worker keeps nothing of a training: this is the step whose samples are next.

        Raises:
            TrainingError: inside a pass, after the last one, or several nodes are at different steps.
            EndpointError: the network failed.
        """
        if self._phase is not None:
            raise TrainingError("ask for the step before forward is called")
        return self._transfers.trained()

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to call backward() on when the optimizer node has a loss scale (as GradScaler.scale)."""
        return loss * self._loss_scale

    def wait(self) -> None:
        """Block until all gradients of the passes so far are acknowledged; raises EndpointError."""
        self._transfers.wait()

    @contextmanager
    def accumulate(self) -> Iterator[None]:
        """Keep gradients in `parameter.grad` inside, as in DDP's `no_sync`; the next step outside pushes the sum.

        The optimizer node runs these passes as `Pass.ACCUMULATE`. This worker then holds gradients of the whole model.
        """
        before, self._accumulating = self._accumulating, True
        try:
            yield
        finally:
            self._accumulating = before

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Weights and buffers under the names of the plain model's own state_dict, fp32, as the node has sent them.

        A forward-only pass, which the optimizer node must be told to run, on every worker: `node.run([..., False])`.
        On the wire weights are rounded to its type; the node's own `state_dict()` has them unrounded.

        Raises:
            TrainingError: inside a pass, or the node runs no forward-only pass now.
        """
        self._begin(Pass.FORWARD)
        weights: dict[int, torch.Tensor] = {}
        for index, storage in enumerate(self._storage):
            elements = torch.empty(storage.spec.numel, dtype=torch.float32)
            self._transfers.take(index, Phase.FORWARD).copy_to(elements)
            for parameter, tensor in zip(storage.parameters, storage.spec.tensors, strict=True):
                weights[id(parameter)] = elements[tensor.span].view(tensor.shape)
        self._phase = None
        return state_of(self._model, weights)

    def detach(self) -> None:
        """Remove the hooks. The parameters stay without memory: they are at the optimizer node.

        Also after an error in the middle of a pass, whose gradients are dropped; the model can then be attached again.
        """
        while self._handles:
            self._handles.pop().remove()
        for storage in self._storage:
            storage.free()
            for parameter in storage.parameters:
                parameter.grad = None

    def _before_model(self, _model: nn.Module, _args: object) -> None:
        training = Pass.ACCUMULATE if self._accumulating else Pass.TRAIN
        self._begin(training if torch.is_grad_enabled() else Pass.FORWARD)

    def _begin(self, kind: Pass) -> None:
        if self._phase is Phase.BACKWARD:
            raise TrainingError("forward was called before the backward of the previous one: one of each per step")
        if self._phase is Phase.FORWARD:
            raise TrainingError(f"the last forward ended before layer {self._next} ({self.table[self._next].name}) ran")
        self._kind = kind
        self._transfers.begin_pass(kind)
        self._phase = Phase.FORWARD
        self._next = 0

    def _after_model(self, _model: nn.Module, _args: object, _output: object) -> None:
        if self._kind is Pass.FORWARD and self._phase is None:
            for storage in self._storage:
                storage.free()  # those that later layers used

    def _forward_pre_hook(self, index: int) -> Any:
        def before_forward(_module: nn.Module, _args: object) -> None:
            if self._phase is Phase.BACKWARD:  # activation checkpointing runs the layer again
                self._arrive_backward(index)
                return
            if self._runs_again(index):
                return
            if self._phase is None:
                raise TrainingError(f"layer {self.table[index].name} ran on its own: call the model, not its layers")
            self._fill(index, Phase.FORWARD)
            self._started[index] = time.monotonic()

        return before_forward

    def _runs_again(self, index: int) -> bool:
        """Whether a module that the model has in two places runs in the second; its memory was kept."""
        storage = self._storage[index]
        return index < self._next and storage.kept and storage.resident

    def _forward_hook(self, index: int) -> Any:
        def after_forward(_module: nn.Module, _args: object, output: object) -> None:
            if self._phase is not Phase.FORWARD or index < self._next:
                return
            self._timeline.add("forward", index, self._started[index])
            if self._kind is not Pass.FORWARD:
                for tensor in tensors_in(output):
                    if tensor.requires_grad:
                        tensor.register_hook(self._output_hook(index))  # type: ignore[no-untyped-call]
            if not self._storage[index].kept:
                self._storage[index].free()
            torch.clear_autocast_cache()  # it would hold a copy of every layer's weights
            self._next = index + 1
            if self._next == len(self.table):
                self._end_forward()

        return after_forward

    def _end_forward(self) -> None:
        if self._kind is Pass.FORWARD:
            self._phase = None
            return
        self._phase = Phase.BACKWARD
        self._next = self._next_push = len(self.table) - 1
        self._missing = [sum(p.requires_grad for p in storage.parameters) for storage in self._storage]

    def _output_hook(self, index: int) -> Any:
        def before_backward(_gradient: torch.Tensor) -> None:
            self._arrive_backward(index)

        return before_backward

    def _arrive_backward(self, index: int) -> None:
        if self._phase is not Phase.BACKWARD:
            raise TrainingError("backward ran twice for one forward: its layers have been pushed and freed")
        if self._next == len(self.table) - 1:
            engine = torch.autograd.Variable._execution_engine
            engine.queue_callback(self._finish_backward)
        while self._next >= index:
            self._fill(self._next, Phase.BACKWARD)
            self._started[self._next] = time.monotonic()
            self._next -= 1

    def _gradient_hook(self, index: int) -> Any:
        def accumulated(_parameter: torch.Tensor) -> None:
            self._missing[index] -= 1
            if self._missing[index] == 0:
                self._timeline.add("backward", index, self._started[index])
                self._storage[index].free()
                self._push_complete()

        return accumulated

    def _push_complete(self) -> None:
        """Push every layer that is complete and whose successors have been pushed: the order both ends know."""
        self._measure_gradients()
        while self._next_push > self._next and self._missing[self._next_push] <= 0:
            storage = self._storage[self._next_push]
            if self._kind is Pass.TRAIN:
                gradients = [_gradient_of(parameter) for parameter in storage.parameters]
                for parameter in storage.parameters:
                    parameter.grad = None
                self._transfers.push(self._next_push, gradients, self._exponents[self._next_push])
            self._next_push -= 1

    def _finish_backward(self) -> None:
        """End of backward: layers that the loss does not depend on are pulled and pushed as zeros, in order."""
        self._arrive_remaining()
        self._missing = [0] * len(self.table)
        for storage in self._storage:
            storage.free()
        self._push_complete()
        self._phase = None

    def _arrive_remaining(self) -> None:
        while self._next >= 0:
            self._fill(self._next, Phase.BACKWARD)
            self._next -= 1

    def _fill(self, index: int, phase: Phase) -> None:
        arrived = self._transfers.take(index, phase)
        self._exponents[index] = arrived.exponents
        self._loss_scale = arrived.loss_scale
        self._storage[index].fill(arrived)
        resident = sum(storage.nbytes for storage in self._storage if storage.resident)
        self._peak_parameters = max(self._peak_parameters, resident + arrived.nbytes + self._transfers.buffered_bytes)

    def _measure_gradients(self) -> None:
        held = sum(
            parameter.grad.numel() * 4
            for storage in self._storage
            for parameter in storage.parameters
            if parameter.grad is not None
        )
        self._peak_gradients = max(self._peak_gradients, held + self._transfers.held_bytes)


def _gradient_of(parameter: nn.Parameter) -> torch.Tensor:
    return torch.zeros(parameter.shape) if parameter.grad is None else parameter.grad
