"""A model whose parameters are sharded over a partition group, and the hooks that gather and free its layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from catchment.host.layers import TrainingError
from catchment.host.torch.outputs import tensors_in
from catchment.host.torch.partition import ModelLayer, layers_of
from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.gather import Gatherer
from catchment.host.torch.sharded.gradients import Gradients
from catchment.host.torch.sharded.links import Links
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.host.torch.sharded.plan import Plan
from catchment.host.torch.sharded.residence import Residence
from catchment.host.torch.sharded.scatter import Scatterer
from catchment.host.torch.sharded.shards import Shards
from catchment.host.torch.sharded.sums import FloatSums, IntSums, Sums
from catchment.host.torch.sharded.watch import Watch


class ShardedModel:
    """One rank's part of a model, over communicators that are open already; `MiCS` finds them itself.

    All ranks have the same model with the same weights. Layers run one after another, as `layers_of` finds them.

    Args:
        model: its parameters lose their memory, and have some while their layer computes.
        options: of the model; `partition_size` is that of `links`.
        links: of this rank.
        layers: names of the modules that are layers, in the order forward runs them.
        kept: layers whose parameters forward also uses outside of them (`h @ self.wte.weight.T`): as of `layers_of`.

    Raises:
        ShardingError: the ranks' weights differ, or parameters cannot be sharded.
    """

    def __init__(
        self,
        model: nn.Module,
        options: MiCSOptions,
        links: Links,
        layers: Sequence[str] | None = None,
        kept: Sequence[str] = (),
    ) -> None:
        if not isinstance(options, MiCSOptions):
            raise ShardingError(f"options {options!r:.80}: give MiCSOptions")
        self.model, self.options, self.links = model, options, links
        found = model_layers(model, layers, kept)
        self._names = [layer.spec.name for layer in found]
        self._layers = found
        self._parameters = [_trained(layer) for layer in found]
        self.shards = Shards(found, self._parameters, links, options.param_dtype)
        layouts = self.shards.layouts
        kept_layers = [layer.kept for layer in found]
        resident = [layer.kept or layer.spec.numel < options.persist_below for layer in found]
        self._gatherer = Gatherer(links)
        self._scatterer = Scatterer(links, options.scaling)
        self._residence = Residence(layouts, resident, self.shards.dtype, options.prefetch, self._gather)
        self._sums = self._make_sums()
        self._gradients = Gradients(
            layouts, self._names, kept_layers, self.shards.dtype, self._sums, links, self._scatterer,
            two_hop=options.two_hop,
        )  # fmt: skip
        self._plans = {training: Plan("training" if training else "forward", self._names) for training in (True, False)}
        self._plan = self._plans[False]
        self._micro_step: int | None = None
        self._training = False
        self._in_backward = False
        self._ran: set[int] = set()
        of = {id(parameter): index for index, own in enumerate(self._parameters) for parameter in own}
        self._watch = Watch(of, self._names, self._residence.usable)
        self._evaluating = ExitStack()
        self._point_parameters()
        self._handles: list[RemovableHandle] = []
        self._install()

    def parameters(self) -> list[nn.Parameter]:
        """This rank's shard of each layer, flat fp32: what an optimizer steps."""
        return list(self.shards.parameters)

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The shards by the names of their layers."""
        return zip(self._names, self.shards.parameters, strict=True)

    @property
    def saturated(self) -> int:
        """Gradients of this rank that ``int`` accumulation has cut; a larger exponent holds them."""
        return self._sums.saturated

    @property
    def gathers(self) -> int:
        """Layers gathered so far; one that is in memory still is not gathered again."""
        return self._residence.gathers

    @property
    def deviations(self) -> int:
        """Passes that left the recorded order of layers."""
        return sum(plan.deviations for plan in self._plans.values())

    @property
    def memory(self) -> dict[str, int]:
        """Bytes that this rank has taken, for good: of its shards, of sums over micro-steps,
        of gathered layers, of gradients on their way.
        """
        return {
            "shards": self.shards.nbytes,
            "sums": self._sums.nbytes,
            "gathered": self._residence.nbytes,
            "gradients": self._gradients.nbytes,
        }

    def clip_gradients(self, most: float) -> float:
        """Scale the gradients of all shards down so that their norm is `most`, if it is more; the norm before.

        Raises:
            ShardingError: an operation failed.
        """
        gradients = [parameter.grad for parameter in self.shards.parameters if parameter.grad is not None]
        total = torch.stack([gradient.square().sum() for gradient in gradients]).sum().reshape(1)
        for line in (self.links.scatter.inside, self.links.scatter.between):
            line.sum(total, "the norm of the gradients")
        norm = float(total.sqrt())
        if norm > most:
            for gradient in gradients:
                gradient.mul_(most / norm)
        return norm

    @contextmanager
    def micro_step(self, number: int) -> Iterator[None]:
        """One forward and backward, of micro-step 0, 1, ...; behind the last one the shards have their gradients.

        Raises:
            ShardingError: not the next micro-step, or an operation failed, of this micro-step or of one before it in
                the step; it names the layer and the ranks.
        """
        steps = self.options.micro_steps
        wanted = 0 if self._micro_step is None else (self._micro_step + 1) % steps
        if number not in {wanted, 0}:
            raise ShardingError(f"micro-step {number}, where {wanted} of {steps} follows")
        self._micro_step = number
        if number == 0:
            self._refresh()
        self._training, self._plan = True, self._plans[True]
        self._ran.clear()
        self._plan.begin()
        self._gradients.begin(first=number == 0, last=number == steps - 1)
        self._residence.ahead(self._plan)
        try:
            with self._watch:
                yield
            if self._in_backward or not self._gradients.finished:
                raise ShardingError(f"micro-step {number} ended without a forward and a backward of the model")
            if number == steps - 1:  # until then sums go on beside the gathers of the next micro-step
                self._gradients.wait()
            self._plan.end()
        finally:
            self._training = self._in_backward = False
            self._residence.release_all()
        if number == steps - 1:
            self._finalize()

    def close(self) -> None:
        """Remove the hooks, and give the communicators back."""
        while self._handles:
            self._handles.pop().remove()
        self._residence.release_all()
        self.links.close()
        self._gatherer.close()
        self._scatterer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- memory

    def _make_sums(self) -> Sums:
        chunks = [layout.chunk for layout in self.shards.layouts]
        if self.options.accumulate == "int":
            largest = max(layout.padded for layout in self.shards.layouts)
            return IntSums(chunks, largest, self.options.exponent, self.links.groups.world)
        return FloatSums(chunks, self.options.scaling)

    def _point_parameters(self) -> None:
        """The parameters become views of their layers' gathered memory."""
        for layer, parameters in enumerate(self._parameters):
            flat = self._residence.memory(layer)
            for parameter, tensor in zip(parameters, self._layers[layer].spec.tensors, strict=True):
                parameter.data = flat[tensor.span].view(tensor.shape)

    def _gather(self, layer: int, out: torch.Tensor) -> Any:
        shards = self.shards
        doing = f"the gather of layer {self._names[layer]}"
        return self._gatherer.start(shards.sent(layer), out, shards.layouts[layer], tag=layer, doing=doing)

    def _refresh(self) -> None:
        self._residence.forget()
        self.shards.refresh()

    def _finalize(self) -> None:
        count = self.links.groups.world * self.options.micro_steps
        for layer, parameter in enumerate(self.shards.parameters):
            gradient = self.shards.gradient(layer)
            self._sums.mean(layer, gradient, count)
            parameter.grad = gradient

    # ---- hooks

    def _install(self) -> None:
        self._handles.append(self.model.register_forward_pre_hook(self._before_model, with_kwargs=True))
        self._handles.append(self.model.register_forward_hook(self._after_model))
        self._handles.append(self.model.register_forward_hook(self._after_evaluation, always_call=True))
        for index, layer in enumerate(self._layers):
            self._handles.append(layer.module.register_forward_pre_hook(self._before_layer(index)))
            self._handles.append(layer.module.register_forward_hook(self._after_layer(index)))
            for parameter in self._parameters[index]:
                hook = self._gradient_hook(index)
                self._handles.append(parameter.register_post_accumulate_grad_hook(hook))  # type: ignore[no-untyped-call]

    def _before_model(self, _model: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if not self._training:
            if torch.is_grad_enabled():
                raise ShardingError("the model ran with gradients outside of micro_step(): use it, or torch.no_grad()")
            self._refresh()
            self._plan = self._plans[False]
            self._plan.begin()
            self._evaluating.enter_context(self._watch)
        dtype = self.options.param_dtype
        return _cast(args, dtype), _cast(named, dtype)

    def _after_model(self, _model: nn.Module, _args: object, _output: object) -> None:
        if not self._training:
            self._residence.release_all()
            self._plan.end()

    def _after_evaluation(self, _model: nn.Module, _args: object, _output: object) -> None:
        self._evaluating.close()

    def _before_layer(self, index: int) -> Any:
        def before(_module: nn.Module, _args: object) -> None:
            if self._in_backward:  # activation checkpointing runs the layer again
                self._arrive(index)
            else:
                self._ran.add(index)
                self._residence.use(index, self._plan)

        return before

    def _after_layer(self, index: int) -> Any:
        def after(_module: nn.Module, _args: object, output: object) -> None:
            if self._in_backward:
                return
            if self._training and torch.is_grad_enabled():
                for tensor in tensors_in(output):
                    if tensor.requires_grad:
                        tensor.register_hook(lambda _: self._arrive(index))  # type: ignore[no-untyped-call]
            if not self._layers[index].kept:
                self._residence.release(index, self._plan)

        return after

    def _arrive(self, index: int) -> None:
        """The backward of a layer begins."""
        if self._gradients.finished:
            raise ShardingError("backward ran twice in a micro-step: add the losses up, or take a micro-step for each")
        if not self._in_backward:
            self._in_backward = True
            torch.autograd.Variable._execution_engine.queue_callback(self._finish_backward)
        if self._gradients.has(index):
            return
        self._residence.use(index, self._plan)
        flat = self._gradients.arrive(index, len(self._parameters[index]))
        for parameter, tensor in zip(self._parameters[index], self._layers[index].spec.tensors, strict=True):
            parameter.grad = flat[tensor.span].view(tensor.shape)

    def _gradient_hook(self, index: int) -> Any:
        def accumulated(parameter: torch.Tensor) -> None:
            if index not in self._ran:
                raise ShardingError(
                    f"parameters of layer {self._names[index]} were used without its forward, when they had no memory: "
                    "name the module that uses them in layers="
                )
            if not self._gradients.has(index):
                self._arrive(index)
            if self._gradients.complete(index):
                for own in self._parameters[index]:
                    own.grad = None
                self._residence.release(index, self._plan)

        return accumulated

    def _finish_backward(self) -> None:
        self._gradients.finish()
        for parameters in self._parameters:
            for parameter in parameters:
                parameter.grad = None
        self._in_backward = False
        self._residence.release_all()


def model_layers(model: nn.Module, layers: Sequence[str] | None, kept: Sequence[str] = ()) -> list[ModelLayer]:
    """What `layers_of` finds.

    Raises:
        ShardingError: where that has another error.
    """
    try:
        return layers_of(model, layers, kept)
    except TrainingError as error:
        raise ShardingError(str(error)) from error


def _trained(layer: ModelLayer) -> list[nn.Parameter]:
    for name, parameter in zip(layer.names, layer.parameters, strict=True):
        if not parameter.requires_grad:
            raise ShardingError(f"parameter {name} of layer {layer.spec.name} is frozen, and a shard is trained whole")
    return layer.parameters


def _cast(value: Any, dtype: torch.dtype | None) -> Any:
    """Inputs of floats, in lists and dicts, too, are computed in the type of the layers, where one is chosen."""
    if type(value) in {tuple, list}:
        return type(value)(_cast(each, dtype) for each in value)
    if type(value) is dict:
        return {key: _cast(each, dtype) for key, each in value.items()}
    floats = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.to(dtype) if floats and dtype is not None else value
