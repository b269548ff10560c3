"""The optimizer's Adam gives the bits of torch.optim.Adam."""

from __future__ import annotations

import pytest
import torch

from host.layers import LayerSpec, TrainingError
from host.optimizer import Adam, LayerState

SHAPES = [("a", (5, 3)), ("b", (7,)), ("c", ()), ("d", (2, 2, 2))]


@pytest.mark.parametrize(
    "adam", [Adam(), Adam(lr=0.1, beta1=0.5, beta2=0.9, eps=1e-3), Adam(beta1=0.0), Adam(lr=3e-2, decay=0.1)]
)
def test_equal_to_torch_bit_for_bit(adam: Adam, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    spec = LayerSpec.of(0, "layer", SHAPES)
    weights = torch.randn(spec.numel, generator=generator)
    state = LayerState(spec, weights)
    master = [weights[t.span].view(t.shape).clone().requires_grad_() for t in spec.tensors]
    kind = torch.optim.AdamW if adam.decay else torch.optim.Adam
    plain = kind(
        master, lr=adam.lr, betas=(adam.beta1, adam.beta2), eps=adam.eps, weight_decay=adam.decay, foreach=False
    )
    for step in range(12):
        lr = adam.lr / (1 + step)
        gradient = torch.randn(spec.numel, generator=generator) * 10.0 ** (step % 5 - 3)
        for number, (tensor, parameter) in enumerate(zip(spec.tensors, master, strict=True)):
            left_alone = step % 4 == 2 and number == 1
            parameter.grad = None if left_alone else gradient[tensor.span].view(tensor.shape)
            if not left_alone:
                state.update(number, gradient[tensor.span].clone(), adam, lr)
        plain.param_groups[0]["lr"] = lr
        plain.step()
        expected = torch.cat([parameter.detach().reshape(-1) for parameter in master])
        assert torch.equal(state.master, expected), f"step {step}"
    assert not torch.equal(state.master, weights)


def test_the_state_owns_its_weights() -> None:
    spec = LayerSpec.of(0, "layer", [("a", (3,))])
    weights = torch.ones(3)
    state = LayerState(spec, weights)
    state.update(0, torch.ones(3), Adam(lr=0.5), 0.5)
    assert torch.equal(weights, torch.ones(3))
    assert torch.allclose(state.master, torch.full((3,), 0.5))


def test_bad_arguments() -> None:
    spec = LayerSpec.of(0, "layer", [("a", (3,))])
    with pytest.raises(TrainingError, match="4 weights"):
        LayerState(spec, torch.ones(4))
    for wrong in ({"lr": 0.0}, {"beta1": 1.0}, {"beta2": -0.1}, {"eps": 0.0}, {"decay": -1.0}):
        with pytest.raises(TrainingError):
            Adam(**wrong)
    with pytest.raises(TrainingError, match="no parameters"):
        LayerSpec.of(0, "layer", [])
    with pytest.raises(TrainingError, match="no elements"):
        LayerSpec.of(0, "layer", [("a", (0, 3))])
