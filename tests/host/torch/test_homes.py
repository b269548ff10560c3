"""Homes: every element at one optimizer node, and workers that send and fetch each where it is held."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scripted import ScriptedPort, flat_weights
from torch import nn

from catchment.host import EndpointError
from catchment.host.layers import Home, Homes, LayerSpec, LayerTable, Pass, Piece, TrainingError, WireType
from catchment.host.optimizer import Adam, DynamicLossScale, NodeOptions, ParameterGroup
from catchment.host.torch import attach

TABLE = LayerTable(
    (
        LayerSpec.of(0, "embedding", [("embedding.weight", (60, 5))]),
        LayerSpec.of(1, "block", [("block.up", (40, 6)), ("block.down", (6, 40)), ("block.bias", (6,))]),
        LayerSpec.of(2, "head", [("head.weight", (7, 9)), ("head.bias", (7,))]),
    )
)


class Chain(nn.Module):
    """Three layers, each with a weight and a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(16, 12), nn.Linear(12, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.third(self.second(self.first(x).relu()).relu())
        return result


def _flats(table: LayerTable) -> list[torch.Tensor]:
    return [torch.randn(layer.numel, generator=torch.Generator().manual_seed(layer.index)) for layer in table]


def _random_table(rng: random.Random) -> LayerTable:
    sizes = [[rng.randint(1, 300) for _ in range(rng.randint(1, 5))] for _ in range(rng.randint(2, 6))]
    return LayerTable(
        tuple(
            LayerSpec.of(i, f"l{i}", [(f"l{i}.t{j}", (size,)) for j, size in enumerate(row)])
            for i, row in enumerate(sizes)
        )
    )


def test_every_element_has_one_home_and_parts_make_the_whole_again(rng: random.Random) -> None:
    for _ in range(30):
        table = _random_table(rng)
        roots = rng.randint(1, 2)
        homes = Homes.spread(table, roots, cut=rng.choice([None, 1, 7, 100]))
        flats = _flats(table)
        parts = [homes.split(root, flats) for root in range(roots)]
        for root, part in enumerate(parts):
            assert [flat.numel() for flat in part] == [layer.numel for layer in homes.part(root)]
            assert [table[number].name for number in homes.numbers(root)] == [x.name for x in homes.part(root)]
        assert sum(homes.part(root).numel for root in range(roots)) == table.numel
        assert all(torch.equal(a, b) for a, b in zip(homes.join(parts), flats, strict=True))


def test_shares_follow_the_rates_up_to_one_piece(rng: random.Random) -> None:
    for _ in range(30):
        table = _random_table(rng)
        rates = [rng.uniform(1, 4) for _ in range(3)]
        homes = Homes.spread(table, 3, rates=rates, cut=5)
        times = [homes.part(root).numel / rate for root, rate in enumerate(rates)]
        assert max(times) - min(times) <= 5 / min(rates) + 1e-9


def test_whole_tensors_keep_their_names_and_one_root_has_the_table_itself() -> None:
    assert Homes.spread(TABLE, 1).part(0) == TABLE
    homes = Homes.spread(TABLE, 2)
    named = {tensor.name: tensor.shape for root in (0, 1) for layer in homes.part(root) for tensor in layer.tensors}
    assert named == {tensor.name: tensor.shape for layer in TABLE for tensor in layer.tensors}
    cut = {tensor.name for layer in Homes.spread(TABLE, 2, cut=100).part(0) for tensor in layer.tensors}
    assert "embedding.weight[0:100]" in cut


def test_the_digest_covers_the_homes() -> None:
    homes = Homes.spread(TABLE, 2)
    other = Homes.spread(TABLE, 2, rates=(1, 3))
    digests = {homes.part(0).digest, homes.part(1).digest, other.part(0).digest, other.part(1).digest, TABLE.digest}
    assert len(digests) == 5
    part = homes.part(0)
    assert replace(part, home=Home(0, 2, part.home.plan ^ 1)).digest != part.digest


def test_bad_homes_are_named() -> None:
    pieces = Homes.spread(TABLE, 2).pieces
    for wrong, says in (
        (pieces[1:], "elements of tensor embedding.weight from 0 on have no home"),
        ((replace(pieces[0], stop=200), *pieces[1:]), "elements of tensor embedding.weight from 200 on have no home"),
        ((*pieces, pieces[0]), "elements 0 to 300 of tensor embedding.weight have two homes"),
        ((*pieces, Piece(2, 5, 0, 1, 0)), "homes name tensor 5 of layer 2, which the model lacks"),
        ((replace(pieces[0], root=2), *pieces[1:]), "has its home at optimizer node 2 of 2"),
        (tuple(replace(piece, root=1) for piece in pieces), "optimizer node 0 would hold nothing"),
    ):
        with pytest.raises(TrainingError, match=says):
            Homes(TABLE, 2, wrong)
    for rates, cut, says in (((1.0,), None, "rates"), ((1.0, 0.0), None, "rates"), ((), 0, "pieces of 0 elements")):
        with pytest.raises(TrainingError, match=says):
            Homes.spread(TABLE, 2, rates=rates, cut=cut)
    with pytest.raises(TrainingError, match="would hold nothing"):
        Homes.spread(TABLE, 7)
    for roots in (0, -1, 256):
        with pytest.raises(TrainingError, match=f"^{roots} optimizer nodes: 1 to 255$"):
            Homes.spread(TABLE, roots)


def test_the_options_of_a_node_name_what_it_holds() -> None:
    homes = Homes.spread(TABLE, 2, cut=120)
    bias = ParameterGroup(("block.bias", "head.bias"), None)
    options = NodeOptions(2, Adam(), groups=(bias, ParameterGroup(("block.up",), Adam(lr=1))))
    held = [name for root in (0, 1) for group in options.at(homes, root).groups for name in group.tensors]
    assert sorted(held) == ["block.bias", "block.up[0:120]", "block.up[120:240]", "head.bias"]
    for root in (0, 1):
        options.at(homes, root).rules(homes.part(root))
    with pytest.raises(TrainingError, match="names strange, which is no tensor of the model"):
        NodeOptions(2, groups=(ParameterGroup(("strange",), None),)).at(homes, 0)
    with pytest.raises(TrainingError, match="a dynamic loss scale with 2 optimizer nodes"):
        NodeOptions(2, loss_scale=DynamicLossScale()).rules(homes.part(0))


@pytest.mark.parametrize("cut", [None, 10])
def test_a_worker_pulls_and_pushes_every_piece_at_its_home(cut: int | None) -> None:
    torch.manual_seed(3)
    model = Chain()
    table, weights = flat_weights(model)
    homes = Homes.spread(table, 2, cut=cut)
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    data = torch.randn(4, 16)
    model(data).square().sum().backward()
    wanted = [parameter.grad for parameter in model.parameters()]
    model.zero_grad(set_to_none=True)
    ports = [
        ScriptedPort(homes.part(root), homes.split(root, weights), [True, False], WireType.FP32) for root in (0, 1)
    ]
    network = attach(model, ports, homes=homes, wire=WireType.FP32)
    model(data).square().sum().backward()
    network.wait()
    pushed = []
    for root, port in enumerate(ports):
        tensors = [tensor for layer in reversed(homes.part(root).layers) for tensor in layer.tensors]
        flats = {tensor.name: torch.from_numpy(x) for tensor, (_, x) in zip(tensors, port.pushed, strict=True)}
        pushed.append([torch.cat([flats[t.name] for t in layer.tensors]) for layer in homes.part(root)])
    got = torch.cat(homes.join(pushed))
    assert torch.equal(got, torch.cat([gradient.reshape(-1) for gradient in wanted if gradient is not None]))
    assert all(torch.equal(tensor, expected[name]) for name, tensor in network.state_dict().items())
    assert all(port.everything_served for port in ports)


def test_ends_that_disagree_about_the_homes_are_told_how() -> None:
    model = Chain()
    table, weights = flat_weights(model)
    homes = Homes.spread(table, 2)

    def ports(held: Homes, *order: int) -> list[ScriptedPort]:
        return [ScriptedPort(held.part(root), held.split(root, weights), [False]) for root in order]

    def run(endpoints: list[ScriptedPort]) -> None:
        torch.manual_seed(0)
        fresh: nn.Module = Chain()
        attach(fresh, endpoints, homes=homes)
        with torch.no_grad():
            fresh(torch.randn(1, 16))

    run(ports(homes, 0, 1))
    # A message of another length never comes out of a pull, so the shapes below are those that the worker expects.
    spoilt = Homes(table, 2, tuple(replace(piece, root=1 - piece.root) for piece in homes.pieces))
    with pytest.raises(TrainingError, match=r"optimizer node is 1, expected 0: give attach the endpoints in the order"):
        run([*ports(spoilt, 1), *ports(homes, 1)])
    alone = [ScriptedPort(replace(homes.part(0), home=Home()), homes.split(0, weights), [False])]
    with pytest.raises(TrainingError, match=r"number of optimizer nodes is 1, expected 2: give both ends the same"):
        run([*alone, *ports(homes, 1)])
    other = replace(homes.part(0), home=Home(0, 2, 5))
    with pytest.raises(TrainingError, match="another model, or gives its tensors other homes"):
        run([ScriptedPort(other, homes.split(0, weights), [False]), *ports(homes, 1)])
    with pytest.raises(TrainingError, match="1 endpoints for 2 optimizer nodes"):
        run(ports(homes, 0))
    with pytest.raises(TrainingError, match="homes= are of another model"):
        attach(Chain(), ports(homes, 0, 1), homes=Homes.spread(TABLE, 2))


def test_nodes_with_different_loss_scales_are_refused() -> None:
    model = Chain()
    table, weights = flat_weights(model)
    homes = Homes.spread(table, 2)
    ports = [
        ScriptedPort(homes.part(root), homes.split(root, weights), [False], loss_scale=1.0 + root) for root in (0, 1)
    ]
    attach(model, ports)
    with torch.no_grad(), pytest.raises(TrainingError, match="different loss scales"):
        model(torch.randn(1, 16))


def test_nodes_at_different_steps_are_refused_and_equal_ones_are_told() -> None:
    model = Chain()
    table, weights = flat_weights(model)
    homes = Homes.spread(table, 2)

    def ports(*steps: int) -> list[ScriptedPort]:
        return [
            ScriptedPort(homes.part(root), homes.split(root, weights), [True, False], trained=step)
            for root, step in enumerate(steps)
        ]

    said = r"at different steps: node 0 at 4, node 1 at 5; .*catchment proxy restore"
    network = attach(model, ports(4, 5))
    with pytest.raises(TrainingError, match=said):
        network.trained()
    with pytest.raises(TrainingError, match=said):
        model(torch.randn(1, 16))
    network.detach()
    again = attach(model, ports(5, 5))
    assert again.trained() == 5
    model(torch.randn(1, 16)).sum().backward()
    assert again.trained() == 6
    with torch.no_grad():
        model(torch.randn(1, 16))
    with pytest.raises(TrainingError, match="no further pass"):
        again.trained()


def test_a_model_whose_step_failed_is_attached_again_and_forgets_it() -> None:
    torch.manual_seed(5)
    model = Chain()
    table, weights = flat_weights(model)
    homes = Homes.spread(table, 2)
    data = torch.randn(4, 16)
    passes = [Pass.ACCUMULATE, Pass.TRAIN]

    def ports(spoilt: int) -> list[ScriptedPort]:
        def spoil(number: int, message: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            if number == spoilt:
                raise EndpointError("the generations were replaced", kind="closed")
            return message

        return [
            ScriptedPort(homes.part(root), homes.split(root, weights), passes, WireType.FP32, spoil) for root in (0, 1)
        ]

    def step(endpoints: list[ScriptedPort]) -> list[np.ndarray[Any, Any]]:
        network = attach(model, endpoints, wire=WireType.FP32, prefetch=1)
        try:
            with network.accumulate():
                model(data).square().sum().backward()
            model(data).square().sum().backward()
            network.wait()
        finally:
            network.detach()
        return [gradient for port in endpoints for _, gradient in port.pushed]

    whole = step(ports(-1))
    for spoilt in range(1, 2 * len(passes) * len(homes.part(1).layers)):
        with pytest.raises(EndpointError, match="were replaced"):
            step(ports(spoilt))
        assert all(parameter.grad is None for parameter in model.parameters())
        assert all(parameter.untyped_storage().nbytes() == 0 for parameter in model.parameters())
        again = step(ports(-1))
        assert all(np.array_equal(a, b) for a, b in zip(whole, again, strict=True))
