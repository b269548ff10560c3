"""The update kernels: the bits of the slow model on every instruction set, and nearly torch's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from catchment.host import _optimizer
from catchment.host.layers import LayerSpec, TrainingError
from catchment.host.optimizer import Adam, Sgd, UpdateRule
from catchment.host.optimizer.layer_state import LayerState
from catchment.host.optimizer.layer_update import Step, update_layer
from catchment.host.optimizer.store import UNIT, page_aligned
from catchment.sim.golden import optimizers

SHAPES = [("a", (5, 3)), ("b", (7,)), ("c", ()), ("d", (2, 2, 2)), ("e", (UNIT, 2)), ("f", (3 * UNIT + 5,))]
RULES: list[UpdateRule] = [
    Adam(),
    Adam(lr=0.1, beta1=0.5, beta2=0.9, eps=1e-3),
    Adam(beta1=0.0),
    Adam(lr=3e-2, decay=0.1),
    Sgd(),
    Sgd(momentum=0.0, decay=0.01),
    Sgd(lr=0.05, momentum=0.8, decay=0.02, nesterov=True),
]
LAYER = LayerSpec.of(0, "layer", SHAPES)


def _present() -> list[str]:
    names = []
    for name in ("base", "avx2", "avx512"):
        try:
            names.append(_optimizer.Updater(1, name).kernels)
        except ValueError:
            continue
    return names


class Layer:
    """Sections of LAYER, updated by the kernels, beside the slow model's arrays."""

    def __init__(self, rng: random.Random, bf16: bool, *rules: UpdateRule | None) -> None:
        """Tensors take turns with `rules`."""
        self.rules, self.bf16 = rules, bf16
        units = -(-LAYER.numel // UNIT)
        moment = 2 if bf16 else 4
        sizes = {"parameters": 2, "master": 4, "first": moment, "second": moment}
        if any(rule is not None and rule.kind.moments == 1 for rule in rules):
            del sizes["second"]
        self.sections = {name: page_aligned(units * UNIT * size) for name, size in sizes.items()}
        self.units = units
        generator = np.random.default_rng(rng.getrandbits(64))
        self.weights = generator.standard_normal(LAYER.numel).astype(np.float32)
        self.sections["master"].view(np.float32)[: LAYER.numel] = self.weights
        self.moments = [optimizers.Moments.zeros(tensor.numel) for tensor in LAYER.tensors]
        self.steps: tuple[int, ...] = (0,) * len(LAYER.tensors)
        self.generator = generator

    def rule_of(self, name: str) -> UpdateRule | None:
        return self.rules["abcdef".index(name) % len(self.rules)]

    def step(self, updater: _optimizer.Updater, number: int, usable: list[int]) -> Any:
        total = (self.generator.standard_normal(LAYER.numel) * 10.0 ** (number % 5 - 3)).astype(np.float32)
        lr = {rule: rule.lr / (1 + number) for rule in self.rules if rule is not None}
        step = Step(lambda name: (rule, lr[rule]) if (rule := self.rule_of(name)) is not None else None, 1 / 3)
        updated = update_layer(
            updater, LAYER, self.sections, total.view(np.uint8), self.steps, usable, step, [1, self.units - 1]
        )
        self.steps = updated.steps
        for index in usable:
            span, moments = LAYER.tensors[index].span, self.moments[index]
            rule = self.rule_of(LAYER.tensors[index].name)
            if rule is None:
                continue
            assert isinstance(rule, Adam | Sgd)
            self.weights[span] = optimizers.step(rule, self.weights[span], moments, total[span], lr[rule], step.scale)
            if self.bf16:
                moments.first = optimizers.round_bf16(moments.first)
                moments.second = optimizers.round_bf16(moments.second)
        return updated

    def check(self) -> None:
        count = LAYER.numel
        master = self.sections["master"].view(np.float32)
        assert np.array_equal(master[:count].view(np.uint32), self.weights.view(np.uint32))
        sent = self.sections["parameters"].view(np.uint16).astype(np.uint32) << 16
        touched = np.concatenate([np.full(t.numel, s > 0) for t, s in zip(LAYER.tensors, self.steps, strict=True)])
        assert np.array_equal(sent[:count][touched], optimizers.round_bf16(self.weights).view(np.uint32)[touched])
        first = np.concatenate([moments.first for moments in self.moments])
        kept = self.sections["first"]
        widened = (
            (kept.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if self.bf16 else kept.view(np.float32)
        )
        assert np.array_equal(widened[:count], first)
        for section in self.sections.values():  # what pads a section to whole units stays zero
            assert not section[count * (section.size // (self.units * UNIT)) :].any()


@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16"])
@pytest.mark.parametrize("kernels", _present())
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_bits_of_the_slow_model(rule: UpdateRule, kernels: str, bf16: bool, rng: random.Random) -> None:
    updater = _optimizer.Updater(rng.choice([1, 2, 3]), kernels)
    layer = Layer(rng, bf16, rule)
    for number in range(6):
        usable = [index for index in range(len(LAYER.tensors)) if rng.random() < 0.8]
        layer.step(updater, number, usable)
        layer.check()


@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16"])
@pytest.mark.parametrize("kernels", _present())
@pytest.mark.parametrize("groups", [[*RULES[:4], None], [*RULES[4:], None]], ids=["adam", "sgd"])
def test_groups_side_by_side_in_one_layer(
    groups: list[UpdateRule | None], kernels: str, bf16: bool, rng: random.Random
) -> None:
    """Neighbours within one unit of the kernel follow rules of their own, and one of them stays as it is."""
    rng.shuffle(groups)
    updater = _optimizer.Updater(rng.choice([1, 2, 3]), kernels)
    layer = Layer(rng, bf16, *groups)
    for number in range(4):
        layer.step(updater, number, [index for index in range(len(LAYER.tensors)) if rng.random() < 0.8])
        layer.check()
    assert any(layer.steps)


def test_a_layer_of_which_no_tensor_is_updated(rng: random.Random) -> None:
    layer = Layer(rng, False, None)
    layer.sections["second"][:] = 0
    assert not any(layer.step(_optimizer.Updater(1), 0, list(range(len(LAYER.tensors)))).steps)
    layer.check()


def test_digests_follow_every_bit_and_no_kernel_differs(rng: random.Random) -> None:
    memory = np.frombuffer(bytearray(rng.randbytes(3 * UNIT * 4)), np.uint8)
    updaters = [_optimizer.Updater(threads, name) for threads in (1, 3) for name in _present()]
    before = updaters[0].digests(memory, 4, [1, 2])
    assert len(set(before)) == 2
    assert all(updater.digests(memory, 4, [1, 2]) == before for updater in updaters)
    for _ in range(50):
        place, bit = rng.randrange(memory.size), 1 << rng.randrange(8)
        memory[place] ^= bit
        after = updaters[0].digests(memory, 4, [1, 2])
        hit = place >= UNIT * 4
        assert (after[0] != before[0], after[1] != before[1]) == (not hit, hit)
        memory[place] ^= bit
    swapped = memory.copy()
    swapped[:64], swapped[64:128] = memory[64:128].copy(), memory[:64].copy()
    assert updaters[0].digests(swapped, 4, [1, 2])[0] != before[0]


@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16"])
@pytest.mark.parametrize("kernels", _present())
@pytest.mark.parametrize("rule", RULES[::5], ids=str)
def test_update_gives_the_digests_of_what_was_and_what_is(
    rule: UpdateRule, kernels: str, bf16: bool, rng: random.Random
) -> None:
    updater = _optimizer.Updater(2, kernels)
    layer = Layer(rng, bf16, rule)
    shards = [1, layer.units - 1]
    columns = {name: index for index, name in enumerate(("parameters", "master", "first", "second"))}
    sizes = {"parameters": 2, "master": 4, "first": 2 if bf16 else 4, "second": 2 if bf16 else 4}

    def digests() -> dict[str, list[int]]:
        return {name: updater.digests(layer.sections[name], sizes[name], shards) for name in layer.sections}

    for number in range(2):
        before = digests()
        updated = layer.step(updater, number, list(range(len(LAYER.tensors))))
        after = digests()
        for name in layer.sections:
            column = columns[name]
            assert updated.after[:, column].tolist() == after[name]
            assert name == "parameters" or updated.before[:, column].tolist() == before[name]
        assert after["master"] != before["master"]
        absent = [column for name, column in columns.items() if name not in layer.sections]
        assert not updated.after[:, absent].any()
        # parameters that do not begin on a cache line are written another way
        sent = layer.sections["parameters"]
        moved = page_aligned(sent.size + 6)[6 : 6 + sent.size]
        moved[:] = sent
        layer.sections["parameters"] = moved
    layer.check()


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_close_to_torch(rule: UpdateRule, seed: int) -> None:
    """Each step is a few roundings apart: 2^-21 of the weight and of ten times the learning rate, together."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(LAYER.numel, generator=generator)
    state = LayerState(LAYER, weights, rule.kind, _optimizer.Updater(2))
    parameter = weights.clone().requires_grad_()
    if isinstance(rule, Adam):
        plain: torch.optim.Optimizer = torch.optim.AdamW(
            [parameter], lr=rule.lr, betas=(rule.beta1, rule.beta2), eps=rule.eps, weight_decay=rule.decay
        )
    else:
        assert isinstance(rule, Sgd)
        plain = torch.optim.SGD(
            [parameter], lr=rule.lr, momentum=rule.momentum, weight_decay=rule.decay, nesterov=rule.nesterov
        )
    everything = list(range(len(LAYER.tensors)))
    for _ in range(12):
        gradient = torch.randn(LAYER.numel, generator=generator) * 0.1
        parameter.grad = gradient.clone()
        plain.step()
        state.update(gradient * 2, everything, Step(lambda _name: (rule, rule.lr), 0.5))
        bound = 2.0**-21 * (parameter.detach().abs() + 10 * rule.lr)
        assert ((state.master - parameter.detach()).abs() <= bound).all()
        with torch.no_grad():
            parameter.copy_(state.master)
    assert not torch.equal(state.master, weights)


def test_squares_do_not_depend_on_threads_or_kernels(rng: random.Random) -> None:
    values = np.array([rng.gauss(0, 1) for _ in range(3 * UNIT + 17)], np.float32)
    sums = {
        _optimizer.Updater(threads, name).squares(values.view(np.uint8), 0.5)
        for threads in (1, 2, 3)
        for name in _present()
    }
    assert len(sums) == 1
    assert sums.pop() == pytest.approx(float((values.astype(np.float64) * 0.5) @ (values.astype(np.float64) * 0.5)))


def test_the_state_owns_its_weights() -> None:
    spec = LayerSpec.of(0, "layer", [("a", (3,))])
    weights = torch.ones(3)
    rule = Adam(lr=0.5)
    state = LayerState(spec, weights, rule.kind, _optimizer.Updater(1))
    state.update(torch.ones(3), [0], Step(lambda _name: (rule, 0.5), 1.0))
    assert torch.equal(weights, torch.ones(3))
    assert torch.allclose(state.master, torch.full((3,), 0.5))


def test_bad_arguments() -> None:
    spec = LayerSpec.of(0, "layer", [("a", (3,))])
    with pytest.raises(TrainingError, match="4 weights"):
        LayerState(spec, torch.ones(4), Adam().kind, _optimizer.Updater(1))
    for wrong in ({"lr": -1e-9}, {"lr": float("nan")}, {"beta1": 1.0}, {"beta2": -0.1}, {"eps": 0.0}, {"decay": -1.0}):
        with pytest.raises(TrainingError):
            Adam(**wrong)
    for wrong in ({"lr": -1e-9}, {"momentum": 1.0}, {"decay": -1.0}, {"momentum": 0.0, "nesterov": True}):
        with pytest.raises(TrainingError):
            Sgd(**wrong)
    with pytest.raises(TrainingError, match="no parameters"):
        LayerSpec.of(0, "layer", [])
    with pytest.raises(TrainingError, match="no elements"):
        LayerSpec.of(0, "layer", [("a", (0, 3))])
    with pytest.raises(ValueError, match="no kernels"):
        _optimizer.Updater(1, "avx9000")
