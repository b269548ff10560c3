"""Parameter groups: as torch's optimizers have them, the same in memory and out of core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from out_of_core import TABLE, create, initial, node_options, train, train_in_memory
from torch import nn

from catchment.host.layers import TrainingError
from catchment.host.optimizer import Adam, NodeOptions, ParameterGroup, Sgd
from catchment.host.optimizer.schedules import constant
from catchment.host.optimizer.store import Rule
from catchment.host.optimizer.torch_options import pack_groups, parameter_groups, torch_groups, unpack_groups

NO_DECAY = ParameterGroup(("block.0.bias", "block.0.scale", "block.1.bias"), Adam(lr=0.01))
FASTER = ParameterGroup(("head.weight",), Adam(lr=0.05, decay=0.1), rate=constant(0.5))
FROZEN = ParameterGroup(("embedding.weight",), None)


class Model(nn.Module):
    """The model of TABLE."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(90, 50)
        self.block = nn.ModuleList(nn.Module() for _ in range(2))
        self.block[0].weight = nn.Parameter(torch.empty(64, 64))
        self.block[0].bias = nn.Parameter(torch.empty(64))
        self.block[0].scale = nn.Parameter(torch.empty(()))
        self.block[1].weight = nn.Parameter(torch.empty(2048, 3))
        self.block[1].bias = nn.Parameter(torch.empty(5))
        self.head = nn.Linear(9, 7, bias=False)


def options(*groups: ParameterGroup) -> NodeOptions:
    return replace(node_options(), groups=groups)


def flat(node: Any, name: str) -> torch.Tensor:
    layer, tensor = next((layer, t) for layer in TABLE for t in layer.tensors if t.name == name)
    found: torch.Tensor = node.weights(layer.index)[tensor.span].clone()
    return found


@pytest.mark.parametrize("devices", [1, 3])
def test_groups_out_of_core_have_the_bits_of_those_in_memory(tmp_path: Path, devices: int) -> None:
    chosen = options(NO_DECAY, FASTER, FROZEN)
    expected, _, _ = train_in_memory([True] * 4, chosen)
    plain, _, _ = train_in_memory([True] * 4, options())
    with create([tmp_path / str(index) for index in range(devices)]) as store:
        node, _ = train(store, 4, options=chosen)
        for layer in TABLE:
            assert torch.equal(node.weights(layer.index), expected.weights(layer.index))
        assert store.state.layers[0].steps == (0,)
    same = {t.name: torch.equal(flat(expected, t.name), flat(plain, t.name)) for layer in TABLE for t in layer.tensors}
    assert {name for name, equal in same.items() if equal} == {"block.0.weight", "block.1.weight"}
    assert torch.equal(expected.weights(0), initial(0))


def test_groups_of_a_torch_optimizer_whose_model_has_no_memory() -> None:
    with torch.device("meta"):
        model = Model()
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed[1:], "lr": 3e-4}, {"params": [model.block[0].bias], "weight_decay": 0.0, "eps": 1e-6}],
        lr=1e-3,
        weight_decay=0.2,
        betas=(0.8, 0.95),
    )
    groups = parameter_groups(optimizer, model, TABLE)
    assert groups == (
        ParameterGroup(("block.0.weight", "block.1.weight", "head.weight"), Adam(3e-4, 0.8, 0.95, 1e-8, 0.2)),
        ParameterGroup(("block.0.bias",), Adam(1e-3, 0.8, 0.95, 1e-6, 0.0)),
        ParameterGroup(("embedding.weight", "block.0.scale", "block.1.bias"), None),
    )
    rules = options(*groups).rules(TABLE)
    assert unpack_groups(TABLE, Rule.ADAM, pack_groups(TABLE, torch_groups(rules, 0))) == torch_groups(rules, 0)


def test_groups_of_sgd() -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.02)
    (group,) = parameter_groups(optimizer, model, TABLE)
    assert group.rule == Sgd(0.1, 0.8, 0.02, True)
    rules = NodeOptions(1, Sgd(), groups=(group,)).rules(TABLE)
    assert unpack_groups(TABLE, Rule.SGD, pack_groups(TABLE, torch_groups(rules, 0))) == torch_groups(rules, 0)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda p: torch.optim.AdamW(p, amsgrad=True), "amsgrad=True"),
        (lambda p: torch.optim.AdamW(p, maximize=True), "maximize=True"),
        (lambda p: torch.optim.Adam(p, weight_decay=0.1), "take AdamW"),
        (lambda p: torch.optim.SGD(p, momentum=0.9, dampening=0.5), r"dampening=0\.5"),
        (torch.optim.RMSprop, "RMSprop"),
        (lambda _: torch.optim.AdamW([nn.Parameter(torch.empty(2))]), "1 parameters of group 0 are in no layer"),
    ],
)
def test_what_the_kernels_do_not_have_is_refused(made: Any, message: str) -> None:
    model = Model()
    with pytest.raises(TrainingError, match=message):
        parameter_groups(made(model.parameters()), model, TABLE)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([ParameterGroup(("head.weigth",), Adam())], "group 0 names head.weigth, which is no tensor"),
        ([NO_DECAY, NO_DECAY], r"group 1 names block\.0\.bias, which another group has"),
        ([ParameterGroup(("head.weight", "head.weight"), Adam())], "or twice"),
        ([FASTER, ParameterGroup(("block.0.bias",), Sgd())], "one kind of optimizer"),
    ],
)
def test_groups_that_do_not_fit(tmp_path: Path, groups: list[ParameterGroup], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        train_in_memory([True], options(*groups))
    with create([tmp_path / "a"]) as store, pytest.raises(TrainingError, match=message):
        train(store, 1, options=options(*groups))
