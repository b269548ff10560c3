"""What training scripts do beyond a plain step, each beside plain torch: the same bits, or a clear refusal."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from models import MODELS, TiedHead, tokens
from scripted import ScriptedPort, flat_weights
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    checkpoint_wrapper,
    offload_wrapper,
)

from catchment.host.layers import Pass, TrainingError, WireType
from catchment.host.torch import InNetwork, attach, layers_of

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(21)


def loss_of(output: torch.Tensor) -> torch.Tensor:
    return (output * torch.linspace(-1, 1, output.numel()).view(output.shape)).square().mean()


def in_network(
    model: nn.Module, passes: Sequence[bool | Pass], layers: list[str] | None = None, **options: Any
) -> tuple[nn.Module, InNetwork, ScriptedPort]:
    """A copy of `model` whose weights a script serves in fp32."""
    worker = copy.deepcopy(model)
    table, weights = flat_weights(model, layers)
    port = ScriptedPort(table, weights, passes, WireType.FP32)
    return worker, attach(worker, port, layers, wire=WireType.FP32, **options), port


def assert_pushed(port: ScriptedPort, plain: nn.Module, layers: list[str] | None = None) -> None:
    """What was pushed are the gradients of `plain`, bit for bit, last layer first."""
    wanted = [parameter.grad for layer in reversed(layers_of(plain, layers)) for parameter in layer.parameters]
    assert len(port.pushed) == len(wanted)
    for (_, got), gradient in zip(port.pushed, wanted, strict=True):
        assert gradient is not None
        assert np.array_equal(got, gradient.reshape(-1).numpy())


@pytest.mark.parametrize("name", ["decoder", "tied head", "checkpointed", "checkpointed, reentrant"])
def test_gradient_accumulation(name: str) -> None:
    model, layers, batch = MODELS[name]()
    batches = [batch, batch.flip(0), batch.flip(1)]
    worker, network, port = in_network(model, [Pass.ACCUMULATE, Pass.ACCUMULATE, Pass.TRAIN, True], layers)
    for number, each in enumerate(batches):
        with network.accumulate() if number < 2 else nullcontext():
            loss = loss_of(worker(each)) / 3
            loss.backward()
        loss_of(model(each)).div(3).backward()
        assert bool(port.pushed) == (number == 2)
    network.wait()
    assert_pushed(port, model, layers)
    assert all(parameter.grad is None for parameter in worker.parameters())
    port.pushed.clear()
    model.zero_grad()
    loss_of(worker(batch)).backward()
    loss_of(model(batch)).backward()
    assert_pushed(port, model, layers)
    assert network.memory.peak_gradient_bytes >= network.memory.model_bytes


@pytest.mark.parametrize(("node", "accumulating"), [(Pass.TRAIN, True), (Pass.ACCUMULATE, False)])
def test_accumulation_of_which_one_end_does_not_know(node: Pass, accumulating: bool) -> None:
    worker, network, _ = in_network(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)), [node])
    with (
        pytest.raises(TrainingError, match="not at the optimizer node"),
        network.accumulate() if accumulating else nullcontext(),
    ):
        worker(torch.ones(2, 3)).sum().backward()


@pytest.mark.parametrize("name", ["decoder", "tied head", "perceptron", "checkpointed"])
@pytest.mark.parametrize("around", ["each forward", "all"])
def test_autocast_to_bf16(name: str, around: str) -> None:
    """Also around several steps: the casts of one step's weights are not the next one's."""
    model, layers, batch = MODELS[name]()
    worker, _, port = in_network(model, [True, False, True], layers)
    autocast = torch.autocast("cpu", torch.bfloat16)
    with autocast if around == "all" else nullcontext():
        for _ in range(2):
            port.pushed.clear()
            model.zero_grad()
            with nullcontext() if around == "all" else autocast:
                ours, theirs = worker(batch), model(batch)
                assert theirs.dtype is torch.bfloat16
                assert torch.equal(ours, theirs)
                losses = loss_of(ours.float()), loss_of(theirs.float())
            for loss in losses:
                loss.backward()
            assert_pushed(port, model, layers)
            if port.everything_served:
                break
            with torch.no_grad(), nullcontext() if around == "all" else autocast:
                assert torch.equal(worker(batch), model(batch))


def test_casts_of_autocast_do_not_outlive_the_weights() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False))
    worker = copy.deepcopy(model)
    table, weights = flat_weights(model)
    port = ScriptedPort(table, weights, [True, True], WireType.FP32)
    second = ScriptedPort(table, [weights[0] * 2], [True, True], WireType.FP32)
    port._messages[2:] = second._messages[2:]
    attach(worker, port, wire=WireType.FP32)
    batch = torch.randn(2, 4)
    with torch.autocast("cpu", torch.bfloat16):
        first = worker(batch)
        first.sum().backward()
        assert torch.equal(worker(batch), 2 * first)


def _wrap(model: nn.Module, wrapper: Callable[[nn.Module], nn.Module]) -> nn.Module:
    for index in range(2):
        model.blocks[index] = wrapper(model.blocks[index])
    return model


OFFLOADED: dict[str, Callable[[nn.Module], nn.Module]] = {
    "offloaded": offload_wrapper,
    "checkpointed": lambda block: checkpoint_wrapper(block, checkpoint_impl=CheckpointImpl.NO_REENTRANT),
    "checkpointed, reentrant": lambda block: checkpoint_wrapper(block, checkpoint_impl=CheckpointImpl.REENTRANT),
    "offloaded checkpoints": lambda block: offload_wrapper(checkpoint_wrapper(block)),
    "offloaded checkpoints, reentrant": lambda block: offload_wrapper(
        checkpoint_wrapper(block, checkpoint_impl=CheckpointImpl.REENTRANT)
    ),
}


@pytest.mark.parametrize("how", OFFLOADED)
@pytest.mark.parametrize("autocast", [False, True])
def test_offloaded_and_checkpointed_activations(how: str, autocast: bool) -> None:
    model = TiedHead(True)
    wrapped, plain = (_wrap(copy.deepcopy(model), OFFLOADED[how]) for _ in range(2))
    assert [layer.spec for layer in layers_of(wrapped)] == [layer.spec for layer in layers_of(model)]
    table, weights = flat_weights(model)
    port = ScriptedPort(table, weights, [True, True], WireType.FP32)
    attach(wrapped, port, wire=WireType.FP32)
    for _ in range(2):
        port.pushed.clear()
        plain.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            losses = [loss_of(each(tokens()).float()) for each in (wrapped, plain)]
        for loss in losses:
            loss.backward()
        assert_pushed(port, plain)


def test_saved_tensors_that_are_packed_by_hooks() -> None:
    """Hooks pack as `save_on_cpu` and activations on disk do: what they pack holds the weights of its own pass."""
    model, layers, batch = MODELS["perceptron"]()
    worker, _, port = in_network(model, [True], layers)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone().numpy(), torch.from_numpy):
        ours = loss_of(worker(batch))
    loss_of(model(batch)).backward()
    ours.backward()
    assert_pushed(port, model, layers)


@pytest.mark.parametrize("name", ["convolutions", "shared embedding", "tied head with a bias"])
def test_state_dict_of_the_network(name: str) -> None:
    model, layers, batch = MODELS[name]()
    worker, network, _ = in_network(model, [True, False, False], layers)
    if name == "convolutions":
        model.register_buffer("scratch", torch.ones(2), persistent=False)
        worker.register_buffer("scratch", torch.ones(2), persistent=False)
    for each in (worker, model):
        loss_of(each(batch)).backward()
    state = network.state_dict()
    assert list(state) == list(model.state_dict())
    for key, value in model.state_dict().items():
        assert torch.equal(state[key], value), key
    fresh = MODELS[name]()[0]
    fresh.load_state_dict(state)
    with torch.no_grad():
        assert torch.equal(fresh.eval()(batch), worker.eval()(batch))


def test_state_dicts_that_a_worker_cannot_have() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
    saved = copy.deepcopy(model).state_dict()
    worker, network, _ = in_network(model, [True] * 3)
    for module in (worker, worker[0]):
        with pytest.raises(TrainingError, match="forward-only pass, or the state_dict of the optimizer node"):
            module.state_dict()
    with pytest.raises(TrainingError, match=r"0\.weight is not on this worker"):
        worker.load_state_dict(saved)
    with pytest.raises(TrainingError, match="weight is not on this worker"):
        worker[2].load_state_dict({"weight": torch.ones(2, 2)}, strict=False)
    worker.load_state_dict({"1.running_mean": torch.full((2,), 3.0)}, strict=False)
    assert torch.equal(worker[1].running_mean, torch.full((2,), 3.0))
    loss = worker(torch.randn(4, 2)).sum()
    with pytest.raises(TrainingError, match="before the backward"):
        network.state_dict()
    loss.backward()
    network.state_dict()  # the script serves a training pass; what is next tells
    with pytest.raises(TrainingError, match="out of step"):
        worker(torch.randn(4, 2))
    network.detach()
    assert not worker._forward_pre_hooks
    assert not worker[0]._state_dict_pre_hooks
    assert not worker[0]._load_state_dict_pre_hooks


def test_tied_weights_on_the_meta_device() -> None:
    real = TiedHead(True)
    with torch.device("meta"):
        model = TiedHead(True)
        model.lm_head.weight = model.wte.weight
    table, weights = flat_weights(real)
    port = ScriptedPort(table, weights, [True], WireType.FP32)
    attach(model, port, wire=WireType.FP32)
    assert model.lm_head.weight is model.wte.weight
    loss_of(model(tokens())).backward()
    loss_of(real(tokens())).backward()
    assert_pushed(port, real)


class Functional(nn.Module):
    """The head is no module: forward reads the embedding's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(11, 6)
        self.body = nn.Linear(6, 6)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.body(self.wte(batch))) @ self.wte.weight.T


def test_weights_that_forward_uses_outside_of_their_layer() -> None:
    model = Functional()
    worker, _, port = in_network(model, [True, False], kept=["wte"])
    loss_of(worker(tokens())).backward()
    loss_of(model(tokens())).backward()
    assert_pushed(port, model)
    with torch.no_grad():
        assert torch.equal(worker(tokens()), model(tokens()))
    assert worker.wte.weight.untyped_storage().nbytes() == 0
    with pytest.raises(TrainingError, match=r"kept= names \['wpe'\]"):
        in_network(model, [True], kept=["wpe"])
