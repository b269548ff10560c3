"""attach: gradients are those of plain PyTorch, bit for bit; memory comes and goes; the order is the agreed one."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from models import MODELS
from scripted import ScriptedPort, flat_weights
from torch import nn

from catchment.host.layers import Timeline, TrainingError, WireType
from catchment.host.torch import attach, layers_of
from catchment.sim.training.model import PRESETS, Decoder, next_byte_loss

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(20)


def _loss(output: torch.Tensor) -> torch.Tensor:
    return (output * torch.linspace(-1, 1, output.numel()).view(output.shape)).square().mean()


def _plain_gradients(
    model: nn.Module, batch: torch.Tensor, layers: list[str] | None, wire: WireType
) -> list[np.ndarray]:
    """Gradients in the order of the pushes: last layer first, its tensors in order."""
    plain = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.copy_(parameter.to(wire.torch_dtype))
    _loss(plain(batch)).backward()
    named = dict(plain.named_parameters())
    table, _ = flat_weights(model, layers)
    return [
        (torch.zeros(named[t.name].shape) if named[t.name].grad is None else named[t.name].grad).reshape(-1).numpy()
        for layer in reversed(table.layers)
        for t in layer.tensors
    ]


@pytest.mark.parametrize("wire", list(WireType))
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("prefetch", [1, 3])
def test_gradients_are_those_of_plain_torch(name: str, wire: WireType, prefetch: int) -> None:
    model, layers, batch = MODELS[name]()
    expected = _plain_gradients(model, batch, layers, wire)
    table, weights = flat_weights(model, layers)
    port = ScriptedPort(table, weights, [True, True], wire)
    network = attach(model, port, layers, wire=wire, prefetch=prefetch)
    for step in range(2):
        model.train()
        _loss(model(batch)).backward()
        pushed = port.pushed[step * len(expected) : (step + 1) * len(expected)]
        assert len(pushed) == len(expected)
        for (_, got), wanted in zip(pushed, expected, strict=True):
            assert np.array_equal(got, wanted)
    network.wait()
    assert port.everything_served
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(parameter.untyped_storage().nbytes() == 0 for parameter in model.parameters())


def test_the_comparison_can_fail() -> None:
    model, layers, batch = MODELS["perceptron"]()
    expected = _plain_gradients(model, batch, layers, WireType.FP32)
    table, weights = flat_weights(model)
    weights[1] = weights[1] + 1e-3
    port = ScriptedPort(table, weights, [True], WireType.FP32)
    attach(model, port, wire=WireType.FP32)
    _loss(model(batch)).backward()
    assert not all(np.array_equal(got, wanted) for (_, got), wanted in zip(port.pushed, expected, strict=True))


def test_the_optimizer_nodes_loss_scale_multiplies_the_gradients() -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    batch = torch.randn(5, 4)
    table, weights = flat_weights(model)
    pushed = []
    for scale in (1.0, 1024.0):
        port = ScriptedPort(table, weights, [True], WireType.FP32, loss_scale=scale)
        worker = copy.deepcopy(model)
        network = attach(worker, port, wire=WireType.FP32)
        loss = _loss(worker(batch))
        assert network.loss_scale == scale
        network.scale(loss).backward()
        pushed.append([values for _, values in port.pushed])
    for plain, scaled in zip(*pushed, strict=True):
        assert np.array_equal(plain * np.float32(1024), scaled)
        assert plain.any()


def test_exponents_of_the_message_go_with_the_pushes_and_the_order_is_figure_5() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1))
    table, weights = flat_weights(model)
    port = ScriptedPort(table, weights, [True, False])
    attach(model, port, prefetch=1)
    model(torch.ones(2, 3)).sum().backward()
    with torch.no_grad():
        model(torch.ones(2, 3))
    # one pull in flight: each further pull is asked for when the one before has been taken
    assert port.log == [
        *("pull 0", "pull 1", "pull 2"),
        *("pull 2", "pull 1", "push E=2", "push E=3", "pull 0", "push E=1", "push E=2"),
        *("pull 0", "push E=0", "push E=1", "pull 1", "pull 2"),
    ]


def test_parameters_have_memory_only_while_their_layer_computes() -> None:
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(6)))
    table, weights = flat_weights(model)
    resident: list[int] = []

    def look(*_: object) -> None:
        resident.append(sum(layer.weight.untyped_storage().nbytes() > 0 for layer in model))

    network = attach(model, ScriptedPort(table, weights, [True]), prefetch=2)
    for layer in model:
        layer.register_forward_hook(look, prepend=True)
        layer.register_full_backward_hook(look)
    model(torch.ones(2, 16)).sum().backward()
    assert resident
    assert max(resident) <= 2
    assert resident[:6] == [1] * 6
    layer_bytes = table[0].numel * 4
    assert network.memory.model_bytes == 6 * layer_bytes
    # one or two layers in fp32, and three messages in bf16 with their headers
    assert layer_bytes <= network.memory.peak_parameter_bytes <= 2 * layer_bytes + 3 * (layer_bytes // 2 + 64)
    assert layer_bytes <= network.memory.peak_gradient_bytes <= 2 * layer_bytes


def test_a_model_on_the_meta_device_never_has_all_its_parameters() -> None:
    real = Decoder(PRESETS["tiny"])
    table, weights = flat_weights(real)
    with torch.device("meta"):
        model = Decoder(PRESETS["tiny"])
    attach(model, ScriptedPort(table, weights, [True], WireType.FP32), wire=WireType.FP32)
    tokens = torch.randint(0, 256, (2, 9))
    loss = next_byte_loss(model(tokens), tokens)
    loss.backward()
    assert loss.item() == next_byte_loss(real(tokens), tokens).item()
    assert not any(parameter.is_meta for parameter in model.parameters())


def test_timeline_has_each_layer_forward_and_backward() -> None:
    model, layers, batch = MODELS["decoder"]()
    table, weights = flat_weights(model, layers)
    timeline = Timeline(enabled=True)
    network = attach(model, ScriptedPort(table, weights, [True]), timeline=timeline)
    _loss(model(batch)).backward()
    network.wait()
    spans = timeline.during(0.0, float("inf"))
    for kind in ("forward", "backward"):
        assert sorted(span.layer for span in spans if span.kind == kind) == list(range(len(table)))
    assert all(span.end >= span.start for span in spans)
    assert timeline.during(0.0, min(span.start for span in spans)) == []


def test_tied_weights_belong_to_the_first_layer_that_uses_them() -> None:
    layers = layers_of(MODELS["tied head"]()[0])
    assert [layer.spec.name for layer in layers] == ["wte", "blocks.0", "blocks.1", "norm"]
    assert [layer.kept for layer in layers] == [True, False, False, False]
    layers = layers_of(MODELS["tied head with a bias"]()[0])
    assert [tensor.name for tensor in layers[-1].spec.tensors] == ["lm_head.bias"]
    layers = layers_of(MODELS["shared embedding"]()[0])  # found by itself: registered first, and once
    assert [layer.spec.name for layer in layers][:2] == ["shared", "encoder.block.0"]
    assert len(layers) == 5


def test_blocks_below_a_module_that_only_frames_them_are_layers() -> None:
    """The model is a language model of the hub: a body with embedding, blocks and norm, and a head beside it."""
    body = nn.Module()
    body.embed_tokens = nn.Embedding(5, 4)
    body.layers = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)) for _ in range(2))
    body.norm = nn.LayerNorm(4)
    model = nn.Module()
    model.model = body
    model.lm_head = nn.Linear(4, 5)
    names = [layer.spec.name for layer in layers_of(model)]
    assert names == ["model.embed_tokens", "model.layers.0", "model.layers.1", "model.norm", "lm_head"]


def test_layers_must_exist_cover_the_model_and_be_fp32() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    table, weights = flat_weights(model)
    port = ScriptedPort(table, weights, [True])
    with pytest.raises(TrainingError, match="'2'"):
        attach(model, port, ["0", "2"])
    with pytest.raises(TrainingError, match=r"1\.weight.*in no layer"):
        attach(model, port, ["0"])
    with pytest.raises(TrainingError, match="has no parameters"):
        attach(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), port, ["0", "1"])
    with pytest.raises(TrainingError, match="no layers"):
        attach(nn.Sequential(nn.ReLU()), port)
    with pytest.raises(TrainingError, match="float64"):
        attach(nn.Sequential(nn.Linear(2, 2)).double(), port)
    with pytest.raises(TrainingError, match="prefetch depth 0"):
        attach(nn.Sequential(nn.Linear(2, 2)), port, prefetch=0)


def test_layers_in_another_order_than_forward_runs_them() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    table, weights = flat_weights(model, ["1", "0"])
    attach(model, ScriptedPort(table, weights, [True]), ["1", "0"])
    with pytest.raises(TrainingError, match=r"used layer 1 \(0\) forward, but layer 0 \(1\) forward is next"):
        model(torch.ones(1, 2))


def test_one_forward_and_one_backward_per_step() -> None:
    def fresh(passes: list[bool]) -> nn.Module:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        table, weights = flat_weights(model)
        attach(model, ScriptedPort(table, weights, passes))
        return model

    model = fresh([True, True])
    model(torch.ones(1, 2))
    with pytest.raises(TrainingError, match="before the backward"):
        model(torch.ones(1, 2))
    model = fresh([True, True])
    loss = model(torch.ones(1, 2)).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(TrainingError, match="backward ran twice"):
        loss.backward()
    model = fresh([True])
    with pytest.raises(TrainingError, match="on its own"):
        model[0](torch.ones(1, 2))
    model(torch.ones(1, 2)).sum().backward()
    with pytest.raises(TrainingError, match="last"):
        model(torch.ones(1, 2))


@pytest.mark.parametrize(
    ("byte", "value", "message"),
    [
        (0, 0x58, "magic"),
        (4, 9, "version"),
        (5, 1, "is backward of pass 0"),
        (5, 7, "phase 7"),
        (6, 2, "element type"),
        (7, 0x80, "flags 0x80"),
        (7, 2, "pass 0 is one of TRAIN here"),
        (9, 1, "layer is 1, expected 0"),
        (11, 9, "number of tensors"),
        (15, 5, "of pass 5"),
        (16, 0, "digest"),
        (23, 99, "number of parameters"),
    ],
)
def test_a_message_that_is_not_the_expected_one(byte: int, value: int, message: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    table, weights = flat_weights(model)

    def spoil(number: int, array: np.ndarray) -> np.ndarray:
        if number == 0:
            assert array[byte] != value
            array[byte] = value
        return array

    attach(model, ScriptedPort(table, weights, [True], spoil=spoil))
    with pytest.raises(TrainingError, match=message):
        model(torch.ones(1, 2))
